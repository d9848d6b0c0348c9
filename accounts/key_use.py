"""When API keys were last used: kept in Redis as it happens, written down for all of them together."""

import time
from datetime import UTC, datetime
from uuid import UUID

import structlog
from django.db import connection

from accounts.models import APIKey
from foundation.redis import REDIS_UNREACHABLE, key, shared_client

log = structlog.get_logger(__name__)

PRECISION_SECONDS = 60.0
_MOST_REMEMBERED = 10_000
_noted_at: dict[UUID, float] = {}
"""When this process last noted a key's use: no more than once a minute."""

_WRITE_DOWN = """
    UPDATE accounts_apikey SET last_used_at = used.at
      FROM unnest(%s::uuid[], %s::timestamptz[]) AS used(id, at)
     WHERE accounts_apikey.id = used.id AND (last_used_at IS NULL OR last_used_at < used.at)
"""


def note(api_key: APIKey) -> None:
    """Note that a key is being used now. Never fails: a use that is not known harms nobody."""
    now = time.time()
    if now - _noted_at.get(api_key.pk, 0.0) < PRECISION_SECONDS:
        return
    if len(_noted_at) >= _MOST_REMEMBERED:
        _noted_at.clear()
    _noted_at[api_key.pk] = now
    try:
        shared_client().hset(_uses(), str(api_key.pk), str(now))
    except REDIS_UNREACHABLE as error:
        log.warning("key_use_not_noted", error=type(error).__name__)


def write_down() -> int:
    """Bring what was noted into the database, in one statement; return how many keys it was."""
    client = shared_client()
    noted: dict[bytes, bytes] = client.hgetall(_uses())  # type: ignore[assignment]  # the client is a synchronous one
    if not noted:
        return 0
    times = [datetime.fromtimestamp(float(at), UTC) for at in noted.values()]
    with connection.cursor() as cursor:
        cursor.execute(_WRITE_DOWN, [[UUID(name.decode()) for name in noted], times])
    client.hdel(_uses(), *noted)
    return len(noted)


def _uses() -> str:
    return key(1, "key-uses")
