"""Having one's account erased, and reading the receipt."""

from dataclasses import asdict
from uuid import UUID

from allauth.account.decorators import reauthentication_required
from django.conf import settings
from django.contrib.auth import logout
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.views.decorators.csp import csp_override
from django.views.decorators.http import require_http_methods, require_safe

from accounts.erasure import receipts
from accounts.erasure.closing import request_erasure
from accounts.erasure.confirming import is_address_of
from accounts.erasure.kept import KEPT
from accounts.views.access import SignedInRequest, signed_in

_HTML, _JSON = "text/html", "application/json"


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@reauthentication_required  # type: ignore[untyped-decorator]
def delete_account(request: SignedInRequest) -> HttpResponse:
    """Say what is erased and what is kept; erase the account of who has signed in just now and types its address."""
    error = ""
    if request.method == "POST":
        if is_address_of(request.user, request.POST.get("address", "")):
            erasure = request_erasure(request.user.pk)
            logout(request)
            return redirect(receipts.link(erasure))
        error = "This is not the address of your account. Nothing has been erased."
    shown = {"kept": KEPT, "hours": settings.ERASURE_HOURS, "error": error}
    return render(request, "erasure/delete_account.html", shown, status=422 if error else 200)


@require_safe
@csp_override(settings.PAGE_CSP)
def receipt(request: HttpRequest, erasure_id: UUID) -> HttpResponse:
    """Show a receipt to whoever has its link, as a page or as JSON."""
    erasure = receipts.find(erasure_id, request.GET.get("secret", ""))
    if erasure is None:
        raise Http404
    told = receipts.receipt_of(erasure)
    response: HttpResponse
    if request.get_preferred_type([_HTML, _JSON]) == _JSON:
        response = JsonResponse(asdict(told))
    else:
        response = render(request, "erasure/receipt.html", {"receipt": told})
    add_never_cache_headers(response)
    patch_vary_headers(response, ["Accept"])
    # The address holds the secret.
    response["Referrer-Policy"] = "no-referrer"
    return response
