"""One key of one user makes one generation; every repetition within a day finds it."""

import hashlib
from datetime import timedelta
from typing import Any

import orjson
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.models import User
from conversations.exceptions import IdempotencyConflict, InvalidRequest
from conversations.models import Generation, IdempotencyKey

MOST_KEY_CHARACTERS = 255
_NAME = "Idempotency-Key"


def digest_of(*request: Any) -> bytes:
    """Return what tells one request from another: the SHA-256 of its canonical JSON."""
    return hashlib.sha256(orjson.dumps(request, option=orjson.OPT_SORT_KEYS)).digest()


def check_key(key: str) -> None:
    """Raise `InvalidRequest` for a key that cannot be kept."""
    if not key or len(key) > MOST_KEY_CHARACTERS or not key.isprintable():
        raise InvalidRequest(f"{_NAME} must have 1 to {MOST_KEY_CHARACTERS} printable characters.", param=_NAME)


def made_before(user: User, key: str, digest: bytes) -> Generation | None:
    """Return what an earlier call with this key made, its message and conversation loaded.

    Within a transaction: any other call with the same key waits until this one commits. Raise `IdempotencyConflict` if
    the key was used for another request.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{user.pk}:{key}"])
    kept = IdempotencyKey.objects.select_related("generation__message__parent", "generation__conversation")
    found = kept.filter(user=user, key=key).first()
    if found is None:
        return None
    if found.created_at < timezone.now() - timedelta(hours=settings.IDEMPOTENCY_KEEP_HOURS):
        found.delete()
        return None
    if bytes(found.request_digest) != digest:
        raise IdempotencyConflict(
            "This Idempotency-Key was used for another request; take a new key for a new message.", param=_NAME
        )
    return found.generation


def keep(user: User, key: str, digest: bytes, generation: Generation) -> None:
    """Remember what this key made."""
    IdempotencyKey.objects.create(user=user, key=key, request_digest=digest, generation=generation)
