"""How people sign in through the organisation's own OpenID Connect provider."""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.shortcuts import render

from accounts.models import User
from accounts.sign_up_rules import accept_invitation, check_new_address


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth is untyped
    """Takes an address from the provider only where the provider says that it is verified."""

    def authenticate_by_email(self, sociallogin: SocialLogin) -> tuple[User, str] | None:
        found: tuple[User, str] | None = super().authenticate_by_email(sociallogin)
        if found is None:
            return None
        user, email = found
        # Who signed up with somebody's address and never confirmed it must not be joined by its owner.
        is_confirmed = EmailAddress.objects.filter(user=user, email__iexact=email, verified=True).exists()
        return found if is_confirmed else None

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        email = _verified_address(sociallogin)
        if email is None:
            raise _refused(request, "The provider has not verified your email address.")
        try:
            check_new_address(request, email)
        except ValidationError as error:
            raise _refused(request, error.messages[0]) from error
        if User.objects.filter(email=email).exists():
            raise _refused(request, "Sign in with your password first, and confirm your email address.")
        return True

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        with transaction.atomic():
            sociallogin.user.email = _verified_address(sociallogin)
            user: User = super().save_user(request, sociallogin, form)
            accept_invitation(request, user)
        return user


def _verified_address(sociallogin: SocialLogin) -> str | None:
    addresses = [address.email.lower() for address in sociallogin.email_addresses if address.verified]
    return addresses[0] if addresses else None


def _refused(request: HttpRequest, sentence: str) -> ImmediateHttpResponse:
    page = render(request, "socialaccount/refused.html", {"sentence": sentence}, status=403)
    return ImmediateHttpResponse(page)
