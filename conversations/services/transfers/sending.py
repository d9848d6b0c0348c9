"""Hands a transfer to Celery once it is committed. What is lost with the broker, the sweep finds."""

from uuid import UUID

import structlog
from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from foundation.redis import REDIS_UNREACHABLE

log = structlog.get_logger(__name__)

WRITE_EXPORT = "conversations.tasks.write_export"
READ_IMPORT = "conversations.tasks.read_import"
_ONCE_MORE = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}


def send_after_commit(task: str, transfer_id: UUID) -> None:
    """Send one of the two tasks, by its name: the tasks import the services."""
    transaction.on_commit(lambda: _send(task, transfer_id), robust=True)


def _send(task: str, transfer_id: UUID) -> None:
    try:
        current_app.send_task(task, args=[str(transfer_id)], retry_policy=_ONCE_MORE)
    except (OperationalError, *REDIS_UNREACHABLE) as error:
        log.warning("task_not_sent", task=task, error=type(error).__name__)
