"""Leaves work to Celery from an event loop. Never fails: what is lost with the broker, sweeps find again."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import structlog
from celery import current_app
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)

_LOOK_AFTER = "conversations.tasks.look_after_answer"
_SETTLE = "conversations.tasks.settle_errand"

_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="deferring")
"""One: a broker that is away holds up nothing but this."""


async def look_after_later(generation_id: UUID) -> None:
    """Have an answer that has ended looked after."""
    await _send(_LOOK_AFTER, generation_id)


async def settle_later(errand_id: UUID) -> None:
    """Have what was written for an errand settled."""
    await _send(_SETTLE, errand_id)


async def _send(task: str, identifier: UUID) -> None:
    try:
        await asyncio.get_running_loop().run_in_executor(_thread, _publish, task, str(identifier))
    except OperationalError as error:
        log.warning("task_not_sent", task=task, error=type(error).__name__)


def _publish(task: str, identifier: str) -> None:
    # By name: the tasks import the services, so that these cannot import them.
    current_app.send_task(task, args=[identifier], retry=False)
