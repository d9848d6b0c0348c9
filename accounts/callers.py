"""Who is calling: what an API key, an access token or a session stands for. Knows no web framework's views."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from uuid import UUID

import jwt
from allauth.headless.tokens.strategies.jwt.internal import validate_access_token
from django.conf import settings
from django.contrib.auth import SESSION_KEY, get_user
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from accounts import key_use
from accounts.api_keys import SECRET_PATTERN, SECRET_PREFIX, digest_of
from accounts.credentials import api_key_credential, session_credential
from accounts.exceptions import KeyRevoked, NotAuthenticated, ScopeMissing, TokenExpired
from accounts.models import APIKey, User
from accounts.models.api_key import SCOPES
from accounts.sanctions import account_suspended

ALL_SCOPES = frozenset(SCOPES)
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")


@dataclass(frozen=True, slots=True)
class Caller:
    """An account, and what the credential it came with may do.

    `credential` names that credential without revealing it: `credentials_revoked` carries the same name.
    """

    user: User
    scopes: frozenset[str]
    credential: str
    api_key_id: UUID | None = None
    session_key: str | None = field(default=None, repr=False)

    def require(self, scope: str) -> None:
        """Raise `ScopeMissing` unless the credential may do what `scope` covers."""
        if scope not in self.scopes:
            raise ScopeMissing(f"This API key lacks the scope `{scope}`: use one that has it.", param=scope)


def caller_from_bearer(token: str) -> Caller:
    """Return who the API key or access token belongs to.

    Raises `NotAuthenticated`, `KeyRevoked`, `TokenExpired` or `AccountSuspended`.
    """
    if not _TOKEN.fullmatch(token):
        raise NotAuthenticated("This is neither an API key nor an access token.")
    if token.startswith(SECRET_PREFIX):
        return _caller_from_api_key(token)
    return _caller_from_access_token(token)


def caller_from_session_key(session_key: str | None) -> Caller:
    """Return who signed in with the session that a cookie names; raises as `caller_from_session`."""
    return caller_from_session(import_module(settings.SESSION_ENGINE).SessionStore(session_key))


def caller_from_session(session: SessionBase) -> Caller:
    """Return who signed in with this session; raises `NotAuthenticated` or `AccountSuspended`."""
    request = HttpRequest()
    request.session = session
    user = get_user(request)
    if isinstance(user, User):
        return _signed_in_caller(user, session.session_key or "")
    if _belongs_to_a_suspended_account(session.get(SESSION_KEY)):
        raise account_suspended(session[SESSION_KEY])
    raise NotAuthenticated("You are not signed in, or your sign-in has ended: sign in again.")


def _signed_in_caller(user: User, session_key: str) -> Caller:
    credential = session_credential(session_key)
    return Caller(user=user, scopes=ALL_SCOPES, credential=credential, session_key=session_key)


def _caller_from_api_key(secret: str) -> Caller:
    if not SECRET_PATTERN.fullmatch(secret):
        raise NotAuthenticated("This is not a key of this site.")
    key = APIKey.objects.select_related("user__tier").filter(digest=digest_of(secret)).first()
    if key is None:
        raise NotAuthenticated("This is not a key of this site.")
    if not key.is_usable():
        raise KeyRevoked("This API key has been revoked or has expired: use another.")
    if not key.user.is_active:
        raise account_suspended(key.user_id)
    key_use.note(key)
    credential = api_key_credential(key.pk)
    return Caller(user=key.user, scopes=frozenset(key.scopes), credential=credential, api_key_id=key.pk)


def _caller_from_access_token(token: str) -> Caller:
    claims = _signed_claims(token)
    found = validate_access_token(token)
    if found is not None and isinstance(found.user, User) and found.session is not None:
        return _signed_in_caller(found.user, found.session.session_key)
    if _belongs_to_a_suspended_account(claims.get("sub")):
        raise account_suspended(str(claims["sub"]))
    raise NotAuthenticated("The sign-in that this access token belongs to has ended: sign in again.")


def _signed_claims(token: str) -> Mapping[str, object]:
    """Return what the token says, once its signature and its expiry have been checked."""
    try:
        claims: Mapping[str, object] = jwt.decode(
            token,
            settings.HEADLESS_JWT_PRIVATE_KEY,
            algorithms=[settings.HEADLESS_JWT_ALGORITHM],
            options={"require": ["exp", "sub"]},
        )
    except jwt.ExpiredSignatureError as error:
        raise TokenExpired("This access token has expired: get another with your refresh token.") from error
    except jwt.PyJWTError as error:
        raise NotAuthenticated("This is not an access token of this site.") from error
    return claims


def _belongs_to_a_suspended_account(user_id: object) -> bool:
    if not isinstance(user_id, str):
        return False
    try:
        return User.objects.filter(pk=user_id, is_active=False).exists()
    except ValidationError:
        return False
