"""How a request says who is calling: `Authorization: Bearer …`, or the session cookie with a CSRF token."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication, CSRFCheck
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.api_keys import SECRET_PREFIX
from accounts.callers import Caller, caller_from_bearer, caller_from_session
from accounts.exceptions import CSRFFailed, NotAuthenticated
from accounts.models import User

if TYPE_CHECKING:  # rest_framework.views imports this module while it reads the settings
    from rest_framework.views import APIView

HOW_TO_AUTHENTICATE = "Send an API key or an access token as `Authorization: Bearer …`, or sign in."


class _BearerAuthentication(BaseAuthentication, ABC):
    def authenticate(self, request: Request) -> tuple[User, Caller] | None:
        token = bearer_token(request._request)
        if token is None or not self.reads(token):
            return None
        caller = caller_from_bearer(token)
        return caller.user, caller

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"

    @abstractmethod
    def reads(self, token: str) -> bool:
        """Say whether this is a credential of the class's kind."""


class APIKeyAuthentication(_BearerAuthentication):
    """`Authorization: Bearer ck_…`."""

    def reads(self, token: str) -> bool:
        return token.startswith(SECRET_PREFIX)


class AccessTokenAuthentication(_BearerAuthentication):
    """`Authorization: Bearer <jwt>`, from the app login. Whatever is no API key is taken for one, and so refused."""

    def reads(self, token: str) -> bool:
        return not token.startswith(SECRET_PREFIX)


class SessionAuthentication(BaseAuthentication):
    """The session cookie, with a CSRF token on methods that change something."""

    def authenticate(self, request: Request) -> tuple[User, Caller] | None:
        caller = _session_caller(request._request)
        return (caller.user, caller) if caller else None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class HasScope(BasePermission):
    """Lets in whose credential has the view's scope.

    A view states `scope = "chat"`, or one for each of its methods: `required_scope = {"GET": "read", "POST": "write"}`.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        if not isinstance(request.auth, Caller):
            raise NotAuthenticated(HOW_TO_AUTHENTICATE)
        scope = _scope_of(view, request.method or "GET")
        if scope is not None:
            request.auth.require(scope)
        return True


def caller_of(request: Request) -> Caller:
    """Return who asks, once `HasScope` has let them in."""
    assert isinstance(request.auth, Caller)
    return request.auth


def bearer_token(request: HttpRequest) -> str | None:
    """Return what follows `Bearer`, or `None` where the request has no such header."""
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _session_caller(request: HttpRequest) -> Caller | None:
    if request.session.is_empty():
        return None
    caller = caller_from_session(request.session)
    _check_csrf(request)
    return caller


def _check_csrf(request: HttpRequest) -> None:
    check = CSRFCheck(lambda _: None)  # type: ignore[arg-type]
    check.process_request(request)
    if check.process_view(request, None, (), {}):  # type: ignore[arg-type]
        raise CSRFFailed("The CSRF token is missing or wrong: reload the page and try again.")


def _scope_of(view: "APIView", method: str) -> str | None:
    scope: str | None = getattr(view, "scope", None)
    by_method: Mapping[str, str] = getattr(view, "required_scope", {})
    named = by_method.get("GET" if method == "HEAD" else method, scope)
    if named is None and method != "OPTIONS" and _implements(view, method):
        raise ImproperlyConfigured(f"{type(view).__name__} names no scope for {method}.")
    return named


def _implements(view: "APIView", method: str) -> bool:
    return getattr(view, method.lower(), None) is not None
