"""The Celery application, and its workers' signs of life."""

import os
import time
from typing import Any

import structlog
from celery import Celery
from celery.signals import heartbeat_sent

from foundation.redis import REDIS_UNREACHABLE, key, shared_client

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")

app = Celery("chatsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

log = structlog.get_logger(__name__)
_KEEP_SECONDS = 60


def celery_workers_key(queue: str) -> str:
    """Return the sorted set of live workers of a queue: name → seconds since the epoch of the last heartbeat."""
    return key(1, "celery-workers", queue)


@heartbeat_sent.connect  # type: ignore[untyped-decorator]
def say_alive(sender: Any, **_kwargs: Any) -> None:
    """Leave a sign of life with each heartbeat, every 2 s."""
    now = time.time()
    try:
        pipeline = shared_client().pipeline(transaction=False)
        for queue in app.amqp.queues.consume_from:
            pipeline.zadd(celery_workers_key(queue), {sender.eventer.hostname: now})
            pipeline.zremrangebyscore(celery_workers_key(queue), "-inf", now - _KEEP_SECONDS)
        pipeline.execute()
    except REDIS_UNREACHABLE as error:
        log.warning("celery_heartbeat_failed", error=type(error).__name__)
