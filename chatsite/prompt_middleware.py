"""Django's middleware without a change of thread for what does no input or output.

`MiddlewareMixin` sends each of its steps to a thread of the request's and back, some sixteen times for each request;
where the event loop is busy, each way waits for the interpreter's lock. Django's deployment checks know its security
middleware by name, so for pages that stays as it is.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from asgiref.sync import sync_to_async
from django.contrib.auth import middleware as auth
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware import clickjacking, common, csp, locale, security
from django.utils.deprecation import MiddlewareMixin

if TYPE_CHECKING:
    _Base = MiddlewareMixin
else:
    _Base = object


class _Prompt(_Base):
    """Takes both steps on the event loop; a step that `may_block` goes to a thread."""

    get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]]

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        before: Callable[[HttpRequest], HttpResponseBase | None] | None = getattr(self, "process_request", None)
        after: Callable[..., HttpResponseBase] | None = getattr(self, "process_response", None)
        response = (before and before(request)) or await self.get_response(request)
        if after is None:
            return response
        if self.may_block(request):
            return await sync_to_async(after)(request, response)
        return after(request, response)

    def may_block(self, request: HttpRequest) -> bool:
        """Say whether the step after the view may use the database."""
        return False


class _OfSessions(_Prompt):
    def may_block(self, request: HttpRequest) -> bool:
        session = getattr(request, "session", None)
        return session is not None and (session.accessed or session.modified or not session.is_empty())


class ContentSecurityPolicyMiddleware(_Prompt, csp.ContentSecurityPolicyMiddleware):
    """See Django's."""


class SessionMiddleware(_OfSessions, sessions.SessionMiddleware):
    """See Django's."""


class LocaleMiddleware(_Prompt, locale.LocaleMiddleware):
    """See Django's."""


class CommonMiddleware(_Prompt, common.CommonMiddleware):
    """See Django's."""


class AuthenticationMiddleware(_Prompt, auth.AuthenticationMiddleware):
    """See Django's."""


class MessageMiddleware(_OfSessions, messages.MessageMiddleware):
    """See Django's."""


class SecurityMiddleware(_Prompt, security.SecurityMiddleware):
    """See Django's."""


class XFrameOptionsMiddleware(_Prompt, clickjacking.XFrameOptionsMiddleware):
    """See Django's."""
