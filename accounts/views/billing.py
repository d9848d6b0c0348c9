"""The page of the plan and what it costs, and its papers. Everybody sees their own only."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.billing import plans
from accounts.billing.forms import ChosenPlanForm
from accounts.billing.invoices import left_of
from accounts.billing.months import Month
from accounts.billing.papers import Paper, credit_note_paper, invoice_paper
from accounts.billing.pdf import PDF_TYPE, print_paper
from accounts.exceptions import InvalidRequest
from accounts.models import CreditNote, Invoice
from accounts.stripe.client import is_configured
from accounts.views.access import SignedInRequest, signed_in
from foundation.file_answers import file_to_read
from foundation.ids import new_id


@require_safe
@signed_in
def page(request: SignedInRequest) -> HttpResponse:
    """Show the plan, the month so far, the plans to choose from, the invoices and credit notes."""
    subscription = plans.subscription_of(request.user)
    month = Month.of(timezone.now())
    context = {
        "subscription": subscription,
        "span": subscription.spans.filter(ends_at=None).first() if subscription else None,
        "month": month,
        "charges": plans.charges_in(subscription, month) if subscription else None,
        "plans": [(plan, plans.is_paid_by_stripe(plan)) for plan in plans.offered_plans()],
        "has_portal": bool(subscription and subscription.is_collected_by_stripe and is_configured()),
        "attempt": new_id(),
        "invoices": Invoice.objects.filter(user=request.user).order_by("-issued_at", "-number"),
        "credit_notes": CreditNote.objects.filter(invoice__user=request.user)
        .select_related("invoice")
        .order_by("-created_at", "-number"),
    }
    return render(request, "settings/billing.html", context)


@require_POST
@signed_in
def choose(request: SignedInRequest) -> HttpResponse:
    """Take the plan that was chosen, from now on."""
    form = ChosenPlanForm(request.POST)
    if not form.is_valid():
        return _back(request, refused="Choose one of the plans.")
    plan = get_object_or_404(plans.offered_plans(), pk=form.cleaned_data["tier"])
    try:
        plans.choose_plan(request.user, plan, at=timezone.now())
    except InvalidRequest as error:
        return _back(request, refused=error.message)
    return _back(request, done=f"You are on the plan {plan.name} from now on.")


@require_POST
@signed_in
def leave(request: SignedInRequest) -> HttpResponse:
    """End the plan now."""
    try:
        plans.leave_plan(request.user, at=timezone.now())
    except InvalidRequest as error:
        return _back(request, refused=error.message)
    return _back(request, done="Your plan has ended. Everything you have written is still here.")


@require_safe
@signed_in
def invoice(request: SignedInRequest, invoice_id: UUID) -> HttpResponse:
    """Show an invoice, and what has become of it."""
    found = get_object_or_404(Invoice, pk=invoice_id, user=request.user)
    shown = {
        "invoice": found,
        "paper": invoice_paper(found),
        "credit_notes": found.credit_notes.order_by("created_at"),
        "left": left_of(found),
    }
    return render(request, "invoices/invoice.html", shown)


@require_safe
@signed_in
def invoice_pdf(request: SignedInRequest, invoice_id: UUID) -> HttpResponse:
    """Give an invoice as a PDF."""
    found = get_object_or_404(Invoice, pk=invoice_id, user=request.user)
    return _printed(invoice_paper(found))


@require_safe
@signed_in
def credit_note_pdf(request: SignedInRequest, credit_note_id: UUID) -> HttpResponse:
    """Give a credit note as a PDF."""
    notes = CreditNote.objects.select_related("invoice")
    found = get_object_or_404(notes, pk=credit_note_id, invoice__user=request.user)
    return _printed(credit_note_paper(found))


def _printed(paper: Paper) -> HttpResponse:
    return file_to_read(print_paper(paper), name=paper.file_name, content_type=PDF_TYPE)


def _back(request: SignedInRequest, *, done: str = "", refused: str = "") -> HttpResponse:
    if done:
        messages.success(request, done)
    else:
        messages.error(request, refused)
    return redirect("billing_page")
