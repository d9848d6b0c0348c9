"""Whether what a stream or a socket was opened with is still good, for all that are open in one statement."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection
from django.utils import timezone

from accounts.callers import Caller
from accounts.exceptions import AccountsError, KeyRevoked, NotAuthenticated
from accounts.sanctions import account_suspended

_STATEMENT = """
    SELECT asked.credential, u.is_active, u.password, u.is_staff, u.is_superuser,
           k.id IS NOT NULL, k.revoked_at IS NOT NULL, k.expires_at, s.expire_date
      FROM unnest(%s::text[], %s::uuid[], %s::uuid[], %s::text[])
           AS asked(credential, user_id, api_key_id, session_key)
      LEFT JOIN accounts_user u ON u.id = asked.user_id
      LEFT JOIN accounts_apikey k ON k.id = asked.api_key_id
      LEFT JOIN django_session s ON s.session_key = asked.session_key
"""


class _Found(NamedTuple):
    credential: str
    is_active: bool | None
    password: str | None
    is_staff: bool | None
    is_superuser: bool | None
    has_key: bool
    is_revoked: bool
    key_ends_at: datetime | None
    session_ends_at: datetime | None


def refusals_of(callers: Sequence[Caller]) -> list[AccountsError | None]:
    """Return for each caller with what it would be refused today, or be allowed less; `None` while all is well."""
    asked = {caller.credential: caller for caller in callers}
    columns: list[list[Any]] = [
        list(asked),
        [caller.user.pk for caller in asked.values()],
        [caller.api_key_id for caller in asked.values()],
        [caller.session_key for caller in asked.values()],
    ]
    with connection.cursor() as cursor:
        cursor.execute(_STATEMENT, columns)
        found = {row[0]: _Found(*row) for row in cursor.fetchall()}
    now = timezone.now()
    return [_refusal(caller, found[caller.credential], now) for caller in callers]


def _refusal(caller: Caller, found: _Found, now: datetime) -> AccountsError | None:
    if found.is_active is None:
        return NotAuthenticated("This account is no more.")
    if not found.is_active:
        return account_suspended(caller.user.pk)
    if caller.api_key_id is not None and not _is_good_key(found, now):
        return KeyRevoked("This API key has been revoked or has expired: use another.")
    if caller.session_key is not None and not _is_good_session(found, caller, now):
        return NotAuthenticated("Your sign-in has ended: sign in again.")
    if (caller.user.is_staff and not found.is_staff) or (caller.user.is_superuser and not found.is_superuser):
        return NotAuthenticated("What you may do here has changed: sign in again.")
    return None


def _is_good_key(found: _Found, now: datetime) -> bool:
    return found.has_key and not found.is_revoked and (found.key_ends_at is None or found.key_ends_at > now)


def _is_good_session(found: _Found, caller: Caller, now: datetime) -> bool:
    is_alive = found.session_ends_at is not None and found.session_ends_at > now
    # Django, too, ends the sessions of those whose password has changed.
    return is_alive and found.password == caller.user.password
