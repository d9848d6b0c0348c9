"""How much of a request's body is read: a file's worth only where files come in, and of who may send one."""

import io
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest

from accounts.authentication import bearer_token
from accounts.callers import Caller, caller_from_bearer, caller_from_session_key
from foundation.database import DATABASE_UNREACHABLE, in_database
from foundation.errors import DomainError

_ADDRESSES = frozenset({"/v1/imports", "/account/data/imports/new"})
_SCOPE = "account"


async def most_bytes_of(scope: Mapping[str, Any]) -> int:
    """Return how many bytes of a request's body are passed on.

    Whoever may not upload is refused by the view, as anywhere; nothing of theirs fills the disk until then.
    """
    usual: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if scope["path"] not in _ADDRESSES or scope["method"] != "POST" or _is_short(scope, usual):
        return usual
    if not await in_database(_may_upload, scope):
        return usual
    most_bytes: int = settings.MAX_IMPORT_BYTES + usual
    return most_bytes


def _is_short(scope: Mapping[str, Any], most_bytes: int) -> bool:
    """Say whether the request tells its length, and that it needs no more room than any other."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return length.isdigit() and int(length) <= most_bytes


def _may_upload(scope: Mapping[str, Any]) -> bool:
    try:
        _caller(ASGIRequest({**scope}, io.BytesIO())).require(_SCOPE)
    except (DomainError, UnicodeDecodeError, *DATABASE_UNREACHABLE):
        return False
    return True


def _caller(request: ASGIRequest) -> Caller:
    token = bearer_token(request)
    if token is not None:
        return caller_from_bearer(token)
    return caller_from_session_key(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
