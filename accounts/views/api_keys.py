"""The page of a person's API keys."""

from datetime import timedelta
from uuid import UUID

from django import forms
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from accounts import api_keys
from accounts.exceptions import InvalidRequest
from accounts.models import APIKey
from accounts.models.api_key import MAX_NAME_CHARACTERS
from accounts.views.access import SignedInRequest, signed_in

_SCOPES = [
    ("chat", "Send messages and have answers written"),
    ("read", "Read conversations, limits and usage"),
    ("write", "Change and delete conversations and memories"),
    ("account", "Manage keys and the account; export, import and delete everything"),
]
_LIFETIMES = [("30", "30 days"), ("90", "90 days"), ("365", "A year"), ("", "Never")]


class NewKeyForm(forms.Form):
    """The key to be made."""

    name = forms.CharField(label="What it is for", max_length=MAX_NAME_CHARACTERS, required=False)
    scopes = forms.MultipleChoiceField(
        label="What it may do", choices=_SCOPES, widget=forms.CheckboxSelectMultiple, initial=["chat", "read"]
    )
    lifetime_days = forms.ChoiceField(label="It ends after", choices=_LIFETIMES, required=False, initial="90")


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def keys(request: SignedInRequest) -> HttpResponse:
    """List the keys; make one, whose secret this page shows once."""
    form = NewKeyForm(request.POST if request.method == "POST" else None)
    secret = _make(request, form) if form.is_bound and form.is_valid() else None
    context = {
        "form": NewKeyForm() if secret else form,
        "secret": secret,
        "keys": _keys_of(request).order_by("-pk"),
        "now": timezone.now(),
    }
    return render(request, "settings/api_keys.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def revoke_key(request: SignedInRequest, api_key_id: UUID) -> HttpResponse:
    """Ask whether the key is to be revoked, and do so."""
    key = _keys_of(request).filter(pk=api_key_id).first()
    if key is None:
        raise Http404
    if request.method == "POST":
        api_keys.revoke_key(key)
        return redirect("api_keys_page")
    return render(request, "settings/api_key_revoke.html", {"key": key})


def _make(request: SignedInRequest, form: NewKeyForm) -> str | None:
    days = form.cleaned_data["lifetime_days"]
    expires_at = timezone.now() + timedelta(days=int(days)) if days else None
    try:
        _, secret = api_keys.make_key(request.user, form.cleaned_data["name"], form.cleaned_data["scopes"], expires_at)
    except InvalidRequest as error:
        form.add_error(None, error.message.partition(": ")[2] or error.message)
        return None
    return secret


def _keys_of(request: SignedInRequest) -> QuerySet[APIKey]:
    return APIKey.objects.filter(user=request.user, revoked_at=None)
