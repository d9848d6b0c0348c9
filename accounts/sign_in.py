"""How people sign in: what allauth leaves to the site."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.auth_backends import AuthenticationBackend
from allauth.account.models import EmailAddress
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.core.internal.httpkit import is_headless_request
from allauth.headless.internal.restkit.response import APIResponse
from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts import sanctions, sign_up_rules
from accounts.models import User
from accounts.time_zones import zone_of

_TOO_OFTEN = ("too_many_login_attempts", "rate_limited")
_OF_KNOWN_ADDRESSES = (
    "account_reset_password",
    "request_password_reset",
    "openid_connect_callback",
    "provider_token",
)
"""Where an address may be that of an account already. `SocialAccountAdapter` looks itself at who is new."""
_NO_PASSWORD = "nobody's"  # noqa: S105
_MAILED_CODE = "reauthenticate_by_code"


class EmailBackend(AuthenticationBackend):  # type: ignore[misc]
    """Signs in by email address and password, and loads the account together with its tier."""

    def get_user(self, user_id: Any) -> User | None:
        user = User.objects.select_related("tier").filter(pk=user_id).first()
        return user if user is not None and user.is_active else None


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """An account has one address, which is its login; no other account has it."""

    def validation_error(self, code: str, *args: Any) -> ValidationError:
        if code in _TOO_OFTEN:
            context.request.failed_too_often = True  # `chatsite.sign_in_limits` reads it
        error: ValidationError = super().validation_error(code, *args)
        return error

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        """Say why an account is suspended, and until when: to whoever has shown that it is theirs, and only here."""
        if is_headless_request(request):
            refusal = sanctions.account_suspended(user.pk)
            error = {"code": refusal.code, "message": refusal.message, **(refusal.details or {})}
            # allauth answers with this, or turns whatever is returned into "not signed in", without a reason.
            raise ImmediateHttpResponse(APIResponse(request, status=403, errors=[error]))
        told = {"suspension": sanctions.suspension_of(user.pk), "zone": zone_of(user)}
        return render(request, "account/account_inactive.html", told, status=403)

    def get_reauthentication_methods(self, user: User) -> list[dict[str, Any]]:
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        # A mailed code is for those who could not say otherwise that it is them.
        return [method for method in methods if method["id"] != _MAILED_CODE] or methods

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return sign_up_rules.is_open_to(request)

    def respond_email_verification_sent(self, request: HttpRequest, user: User | None) -> HttpResponse:
        if user is None:
            # The address has an account already. Who measures is not to miss what a new password's hash would cost.
            make_password(_NO_PASSWORD)
        response: HttpResponse = super().respond_email_verification_sent(request, user)
        return response

    def clean_email(self, email: str) -> str:
        user = context.request.user
        if context.request.resolver_match.url_name in _OF_KNOWN_ADDRESSES:
            return str(super().clean_email(email))
        if not user.is_authenticated:
            sign_up_rules.check_new_address(context.request, email)
            return str(super().clean_email(email))
        # allauth drops an unconfirmed address when another is added, and the account would be left without a login.
        if not EmailAddress.objects.filter(user=user, verified=True).exists():
            raise ValidationError("Confirm the address that you have before you change it.")
        sign_up_rules.check_domain(email)
        return str(super().clean_email(email))

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        with transaction.atomic():
            saved: User = super().save_user(request, user, form, commit)
            if commit:
                sign_up_rules.accept_invitation(request, saved)
        return saved

    def confirm_email(self, request: HttpRequest, email_address: EmailAddress) -> bool:
        # Somebody may have signed up with this address meanwhile, and not confirmed it.
        if User.objects.filter(email=email_address.email).exclude(pk=email_address.user_id).exists():
            return False
        return bool(super().confirm_email(request, email_address))
