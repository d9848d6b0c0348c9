"""Forms of accounts, which have an email address where Django expects a user name."""

from typing import Any, ClassVar

from allauth.account.forms import SignupForm
from allauth.core import context
from django.contrib import messages
from django.contrib.auth import authenticate
from django.contrib.auth.forms import (
    AdminUserCreationForm,
    ReadOnlyPasswordHashField,
    ReadOnlyPasswordHashWidget,
    UserChangeForm,
)
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts import sign_up_rules
from accounts.models import User


class SignUpForm(SignupForm):  # type: ignore[misc]  # allauth is untyped
    """The sign-up form, which may be sent twice at once: whoever is second finds the account made, and is signed in.

    Whoever follows an invitation finds its address filled in.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if invitation := sign_up_rules.invitation_of(context.request):
            self.initial.setdefault("email", invitation.email)

    def try_save(self, request: HttpRequest) -> Any:
        try:
            with transaction.atomic():
                return super().try_save(request)
        except IntegrityError:
            email, password = self.cleaned_data["email"], self.cleaned_data["password1"]
            if user := authenticate(request, email=email, password=password):
                return user, None
            return None, _sign_in_instead(request)


def _sign_in_instead(request: HttpRequest) -> HttpResponse:
    messages.error(request, "There is an account with this address already. Sign in, or reset its password.")
    return redirect("account_login")


class NewUserForm(AdminUserCreationForm):  # type: ignore[type-arg]
    """An account to be made."""

    class Meta:
        model = User
        fields = ("email", "tier")
        field_classes: ClassVar[dict[str, Any]] = {}

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()


class PasswordLink(ReadOnlyPasswordHashWidget):
    """Leads to where another password is set, and shows nothing of this one: not how its hash begins either."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        label = self.get_context(name, value, attrs)["button_label"]
        return format_html('<a role="button" class="button" href="../password/">{}</a>', label)


class UserForm(UserChangeForm):  # type: ignore[type-arg]
    """An account to be changed."""

    password = ReadOnlyPasswordHashField(label="Password", widget=PasswordLink)

    class Meta:
        model = User
        fields = "__all__"
        field_classes: ClassVar[dict[str, Any]] = {}
