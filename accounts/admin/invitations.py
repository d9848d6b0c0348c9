"""Invitations in the admin: made, sent by mail, with the link shown once, and revoked."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts import invitations
from accounts.models import Invitation, User
from foundation.audited_admin import AuditedAdmin, asks_why


class InvitationForm(forms.ModelForm):  # type: ignore[type-arg]
    """Whom to invite."""

    days = forms.IntegerField(
        label="Good for how many days", min_value=1, max_value=365, initial=lambda: settings.INVITATION_DAYS
    )

    class Meta:
        model = Invitation
        fields = ("email", "tier", "days")
        help_texts = {"tier": "The tier of the new account; empty: that of every new account."}

    def clean_email(self) -> str:
        email = str(self.cleaned_data["email"]).lower()
        if User.objects.filter(email=email).exists():
            raise forms.ValidationError("There is an account with this address already.", code="taken")
        return email


@admin.register(Invitation)
class InvitationAdmin(AuditedAdmin):
    """The link is sent to the address, and shown once to whoever makes it; it is kept nowhere."""

    list_display = ("email", "tier", "invited_by", "created_at", "mailed_at", "expires_at", "accepted_at")
    list_select_related = ("tier", "invited_by")
    search_fields = ("email",)
    actions = ("revoke",)

    def get_form(self, request: HttpRequest, obj: Invitation | None = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **{"form": InvitationForm, **kwargs})

    def get_fields(self, request: HttpRequest, obj: Invitation | None = None) -> tuple[str, ...]:
        return ("email", "tier", "days") if obj is None else self.list_display

    def has_change_permission(self, request: HttpRequest, obj: Invitation | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Invitation | None = None) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_invitation")

    def save_model(self, request: HttpRequest, obj: Invitation, form: Any, change: bool) -> None:
        """Make the invitation, of which `obj` is only the draft."""
        assert isinstance(request.user, User)
        chosen = form.cleaned_data
        made, link = invitations.invite(
            chosen["email"], tier=chosen["tier"], by=request.user, days=chosen["days"], by_mail=True
        )
        obj.pk, obj.digest, obj.expires_at = made.pk, made.digest, made.expires_at
        told = f"It is on its way to {made.email}. This is its link as well, which is shown only now: {link}"
        self.message_user(request, told, messages.WARNING)

    @asks_why("Revoke", permissions=["revoke"])
    def revoke(self, request: HttpRequest, rows: QuerySet[Invitation], asked: dict[str, Any]) -> None:
        now = timezone.now()
        for invitation in (rows & invitations.good()).select_for_update(of=("self",)):
            until = invitation.expires_at.isoformat()
            Invitation.objects.filter(pk=invitation.pk).update(expires_at=now)
            self.audit(request, "revoked", invitation, {"expires_at": {"before": until, "after": now.isoformat()}})
        self.message_user(request, "Revoked: the links open nothing any more.", messages.SUCCESS)
