"""API keys: made, told once, revoked."""

import hashlib
import re
import secrets
from collections.abc import Collection
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.credentials import announce_revocation, api_key_credential
from accounts.exceptions import InvalidRequest
from accounts.models import APIKey, User
from accounts.models.api_key import MAX_NAME_CHARACTERS, SCOPES

SECRET_PREFIX = "ck_"  # noqa: S105
SECRET_BYTES = 32
SECRET_PATTERN = re.compile(r"ck_[A-Za-z0-9_-]{43}")
SHOWN_CHARACTERS = 10


def make_key(user: User, name: str, scopes: Collection[str], expires_at: datetime | None = None) -> tuple[APIKey, str]:
    """Make a key and return it with its secret, which is nowhere kept; raises `InvalidRequest`."""
    _check_scopes(scopes)
    if len(name) > MAX_NAME_CHARACTERS:
        raise InvalidRequest(f"name: A name has at most {MAX_NAME_CHARACTERS} characters.", param="name")
    if expires_at is not None and timezone.is_naive(expires_at):
        raise InvalidRequest("expires_at: An expiry needs a time zone.", param="expires_at")
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidRequest("expires_at: An expiry must lie in the future.", param="expires_at")
    if any(not character.isprintable() for character in name):
        raise InvalidRequest("name: A name has no control characters.", param="name")
    secret = SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    with transaction.atomic():
        _check_room(user)
        key = APIKey.objects.create(
            user=user,
            name=name,
            prefix=secret[:SHOWN_CHARACTERS],
            digest=digest_of(secret),
            scopes=[scope for scope in SCOPES if scope in scopes],
            expires_at=expires_at,
        )
    return key, secret


def revoke_key(key: APIKey) -> None:
    """End a key at once; what was opened with it is ended by those who listen. Again, it changes nothing."""
    if APIKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
        announce_revocation(key.user_id, api_key_credential(key.pk))


def digest_of(secret: str) -> bytes:
    """Return what is stored of a secret. It has 256 random bits, so a fast hash is enough."""
    return hashlib.sha256(secret.encode()).digest()


def _check_room(user: User) -> None:
    # One at a time: the count must still be true when the key is made.
    User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
    if APIKey.objects.filter(user=user, revoked_at=None).count() >= settings.MOST_API_KEYS:
        raise InvalidRequest(f"You may have {settings.MOST_API_KEYS} keys: revoke one first.")


def _check_scopes(scopes: Collection[str]) -> None:
    if not scopes:
        raise InvalidRequest(f"scopes: Name at least one scope of {', '.join(SCOPES)}.", param="scopes")
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown:
        raise InvalidRequest(
            f"scopes: There is no scope `{unknown[0]}`; there are {', '.join(SCOPES)}.", param="scopes"
        )
