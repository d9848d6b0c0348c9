"""Who may see the pages, and which policy their scripts live under."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.views.decorators.csp import csp_override

from accounts.models import User
from accounts.second_factor import lacks_second_factor


class SignedInRequest(HttpRequest):
    """A request whose user is known to be a person of this site."""

    user: User


def wants_fragment(request: HttpRequest) -> bool:
    """Say whether the page's script asks, who puts the answer into the page that is already there."""
    return "X-Fragment" in request.headers


def signed_in[**P, Answer: HttpResponseBase](
    view: Callable[Concatenate[SignedInRequest, P], Answer],
) -> Callable[Concatenate[HttpRequest, P], Answer | HttpResponse]:
    """Let only a signed-in person in; nothing of theirs stays in a cache."""

    @csp_override(settings.PAGE_CSP)
    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> Answer | HttpResponse:
        if not request.user.is_authenticated:
            return _sign_in_first(request)
        if lacks_second_factor(request.user):
            return redirect("mfa_index")
        response = view(request, *args, **kwargs)  # type: ignore[arg-type]
        add_never_cache_headers(response)
        patch_vary_headers(response, ["X-Fragment"])
        return response

    return guarded


def _sign_in_first(request: HttpRequest) -> HttpResponse:
    if wants_fragment(request):
        return render(request, "_signed_out.html", status=401)
    return redirect_to_login(request.get_full_path() if request.method == "GET" else "/")
