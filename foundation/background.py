"""Hands work to Celery in passing: whoever does goes on, though the broker is away, and sweeps find what it lost."""

import structlog
from celery import Celery, current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from foundation.redis import REDIS_UNREACHABLE

log = structlog.get_logger(__name__)

_ONCE_MORE = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}
"""A connection that was kept may have been broken off meanwhile."""


def send_task(name: str, *arguments: object, app: Celery = current_app) -> bool:
    """Send a task by its name, since tasks import what sends them; say whether the broker took it."""
    try:
        app.send_task(name, args=[str(each) for each in arguments], retry_policy=_ONCE_MORE)
    except (OperationalError, *REDIS_UNREACHABLE) as error:
        log.warning("task_not_sent", task=name, error=type(error).__name__)
        return False
    return True


def send_after_commit(name: str, *arguments: object) -> None:
    """Send a task once the transaction is committed, and none if it is rolled back."""
    transaction.on_commit(lambda: send_task(name, *arguments), robust=True)
