"""The way to Stripe's pages and back, and what Stripe tells. Nothing that a browser brings back is believed."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from accounts.exceptions import InvalidRequest, InvalidWebhook, PaymentProviderUnavailable
from accounts.models import Tier
from accounts.stripe import checkout, webhooks
from accounts.stripe.client import is_configured
from accounts.stripe.forms import CheckoutForm
from accounts.views.access import SignedInRequest, signed_in
from foundation.addresses import whole_address


@require_POST
@signed_in
def begin(request: SignedInRequest) -> HttpResponse:
    """Send the person to where the chosen plan is paid."""
    form = _configured(CheckoutForm(request.POST))
    if not form.is_valid():
        return _back(request, "Choose one of the plans.")
    tier = get_object_or_404(Tier, pk=form.cleaned_data["tier"])
    try:
        address = checkout.checkout_url(
            request.user,
            tier,
            attempt=form.cleaned_data["attempt"],
            done_url=whole_address("billing_done"),
            back_url=whole_address("billing_page"),
        )
    except (InvalidRequest, PaymentProviderUnavailable) as error:
        return _back(request, error.message)
    return redirect(address)


@require_POST
@signed_in
def portal(request: SignedInRequest) -> HttpResponse:
    """Send the person to where cards and plan are changed."""
    _configured(request)
    try:
        return redirect(checkout.portal_url(request.user, back_url=whole_address("billing_page")))
    except PaymentProviderUnavailable as error:
        return _back(request, error.message)


@require_safe
@signed_in
def done(request: SignedInRequest) -> HttpResponse:
    """Say what happens next; that somebody came here is no payment."""
    _configured(request)
    messages.info(request, "Thank you. Your plan changes as soon as the payment is confirmed, mostly within a minute.")
    return redirect("billing_page")


@csrf_exempt
@require_POST
def webhook(request: HttpRequest) -> HttpResponse:
    """Take what Stripe tells; the signature is the credential."""
    _configured(request)
    try:
        webhooks.receive(request.body, request.headers.get("Stripe-Signature", ""))
    except InvalidWebhook as error:
        return HttpResponse(error.message, status=400, content_type="text/plain")
    except PaymentProviderUnavailable:
        return HttpResponse("Send it again later.", status=503, content_type="text/plain")
    return HttpResponse(status=200)


def _configured[T](what: T) -> T:
    if not is_configured():
        raise Http404
    return what


def _back(request: HttpRequest, sentence: str) -> HttpResponse:
    messages.error(request, sentence)
    return redirect("billing_page")
