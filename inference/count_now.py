"""Counting from synchronous code, before a worker has seen the text."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from django.conf import settings

from inference.catalog import ModelVersion, Replica
from inference.exceptions import UnknownModel
from inference.fleet_reports import last_reports
from inference.messages import ChatMessage
from inference.model_server import ModelServer
from inference.open_fleet import client_of
from inference.stored_catalog import current_catalog
from inference.tgi.errors import ModelServerError
from inference.tgi.transport import Timeouts, model_session
from inference.tokenizer_files import count_by_file_now

_MOST_SECONDS = 2.0
_CONNECT_SECONDS = 0.5


def count_now(alias: str, text: str) -> int | None:
    """Return how many tokens a model makes of a text, without its template; `None` where nobody says within 2 s.

    Of a model's versions the one with most conversations is asked: by its tokenizer's file, or one of its replicas.
    Call it from no event loop.
    """
    version = _usual_version(alias)
    if version is None:
        return None
    deadline = time.monotonic() + _MOST_SECONDS
    count = count_by_file_now(version.tokenizer, text, within_seconds=_MOST_SECONDS)
    if count is None and (seconds := deadline - time.monotonic()) > 0:
        count = asyncio.run(_ask_any(version, lambda server: server.count_text(text), seconds))
    return count


def count_prompt_now(alias: str, messages: Sequence[ChatMessage]) -> int | None:
    """Return how many tokens a model's server makes of a whole prompt, template included; else as `count_now`."""
    version = _usual_version(alias)
    if version is None:
        return None
    return asyncio.run(_ask_any(version, lambda server: server.count_tokens(messages), _MOST_SECONDS))


def _usual_version(alias: str) -> ModelVersion | None:
    try:
        return max(current_catalog().find(alias).versions, key=lambda version: version.weight)
    except UnknownModel:
        return None


async def _ask_any(version: ModelVersion, count: Callable[[ModelServer], Awaitable[int]], seconds: float) -> int | None:
    timeouts = Timeouts(connect_seconds=_CONNECT_SECONDS)
    try:
        async with asyncio.timeout(seconds), model_session() as session:
            for replica in _best_first(version):
                server = client_of(replica, session=session, api_key=settings.MODEL_API_KEY or None, timeouts=timeouts)
                try:
                    return await count(server)
                except ModelServerError:
                    continue
    except TimeoutError:
        return None
    return None


def _best_first(version: ModelVersion) -> list[Replica]:
    """Return the replicas, last those that are not well as far as workers have told: they may be by now."""
    reports = last_reports()
    return sorted(version.replicas, key=lambda each: each.url in reports and not reports[each.url].is_healthy)
