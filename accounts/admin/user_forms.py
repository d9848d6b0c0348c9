"""What the actions on accounts ask for."""

from django import forms
from django.contrib.auth.forms import AdminPasswordChangeForm
from django.utils import timezone

from accounts.models import Tier
from foundation.audit import MOST_REASON_CHARACTERS
from foundation.audited_admin import WhyForm, why_field


class PasswordForm(AdminPasswordChangeForm):  # type: ignore[type-arg]
    """A new password for somebody else's account, and why."""

    why = why_field()


class WarningForm(WhyForm):
    """A warning."""

    told = forms.CharField(
        label="What is put on record as the warning",
        max_length=MOST_REASON_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
    )
    field_order = ("told", "why")


class SuspensionForm(WhyForm):
    """A suspension."""

    told = forms.CharField(
        label="What the user reads as the reason",
        max_length=MOST_REASON_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
    )
    ends_at = forms.DateTimeField(
        label="Until (UTC)",
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text="Empty: until it is lifted.",
    )
    field_order = ("told", "ends_at", "why")

    def clean_ends_at(self) -> object:
        ends_at = self.cleaned_data["ends_at"]
        if ends_at is not None and ends_at <= timezone.now():
            raise forms.ValidationError("The end of a suspension must lie in the future.", code="past")
        return ends_at


class TierChangeForm(WhyForm):
    """Another tier."""

    tier = forms.ModelChoiceField(Tier.objects.order_by("name"))
    field_order = ("tier", "why")
