"""The requests of each user's current window, in Redis: a sorted set of request ids by the time they were counted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from redis.commands.core import Script

from foundation.redis import key, shared_client

_KEY_VERSION = 1

# KEYS: one sorted set per window, members request ids, scores milliseconds of Redis' own clock.
# ARGV: the request's id (empty: only look), then a JSON list with each window's limit, length in ms, and, when they are
# known, the ages in ms of past requests by id.
# A set that is missing says nothing: Redis may have been emptied. So the answer is then `nil`, and the caller comes
# again with what the database knows. All windows are checked before any is written to: a refusal counts nowhere.
_RESERVE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local request = ARGV[1]
local windows = cjson.decode(ARGV[2])
for i, window in ipairs(windows) do
  if redis.call('EXISTS', KEYS[i]) == 0 then
    if not window.past then return nil end
    for id, age_ms in pairs(window.past) do redis.call('ZADD', KEYS[i], now - age_ms, id) end
    redis.call('PEXPIRE', KEYS[i], window.length_ms)
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now - window.length_ms)
end
local admitted = 1
for i, window in ipairs(windows) do
  local counted = request ~= '' and redis.call('ZSCORE', KEYS[i], request)
  if not counted and redis.call('ZCARD', KEYS[i]) >= window.limit then admitted = 0 end
end
local answer = {admitted}
for i, window in ipairs(windows) do
  if admitted == 1 and request ~= '' then
    redis.call('ZADD', KEYS[i], 'NX', now, request)
    redis.call('PEXPIRE', KEYS[i], window.length_ms)
  end
  local used = redis.call('ZCARD', KEYS[i])
  local rank = math.max(0, used - window.limit)
  local first_to_leave = redis.call('ZRANGE', KEYS[i], rank, rank, 'WITHSCORES')[2]
  table.insert(answer, used)
  table.insert(answer, first_to_leave and first_to_leave + window.length_ms - now or 0)
end
return answer
"""

# KEYS: the window. ARGV: the request's id, its age in ms.
_ADD = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local time = redis.call('TIME')
return redis.call('ZADD', KEYS[1], 'NX', time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[2], ARGV[1])
"""


@dataclass(frozen=True, slots=True)
class Window:
    """A user's sliding window: at most `limit` requests in any `seconds`."""

    user_id: UUID
    limit: int
    seconds: int


@dataclass(frozen=True, slots=True)
class WindowState:
    """What a window holds, and whether the request that was asked for is among it."""

    admitted: bool
    used: int
    resets_in_ms: int


def reserve(window: Window, request_id: UUID) -> WindowState | None:
    """Count a request if there is room; `None` where Redis does not know the window."""
    return _run(window, str(request_id), None)


def fill_and_reserve(window: Window, request_id: UUID, past: Mapping[UUID, int]) -> WindowState:
    """Count a request if there is room, in a window of which the ages in milliseconds of past requests are known."""
    state = _run(window, str(request_id), past)
    assert state is not None
    return state


def peek(window: Window) -> WindowState | None:
    """Return what the window holds, or `None` where Redis does not know it."""
    return _run(window, "", None)


def release(user_id: UUID, request_id: UUID) -> None:
    """Take a request out of its window."""
    shared_client().zrem(_key(user_id), str(request_id))


def add(user_id: UUID, request_id: UUID, *, age_ms: int) -> None:
    """Count a past request in a window that Redis knows; others are filled from the database anyway."""
    _script(_ADD)(keys=[_key(user_id)], args=[str(request_id), age_ms])


def _run(window: Window, request: str, past: Mapping[UUID, int] | None) -> WindowState | None:
    stated: dict[str, object] = {"limit": window.limit, "length_ms": window.seconds * 1000}
    if past is not None:
        stated["past"] = {str(request_id): age_ms for request_id, age_ms in past.items()}
    answer = _script(_RESERVE)(keys=[_key(window.user_id)], args=[request, json.dumps([stated])])
    if answer is None:
        return None
    admitted, used, resets_in_ms = answer
    return WindowState(admitted=bool(admitted), used=used, resets_in_ms=resets_in_ms)


def _key(user_id: UUID) -> str:
    # The braces keep all of a user's windows on one node of a cluster, so that one script can see them.
    return key(_KEY_VERSION, "quota", f"{{{user_id}}}", "requests")


def _script(text: str) -> Script:
    return shared_client().register_script(text)
