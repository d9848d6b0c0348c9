"""Second factors: how their secrets are kept, and who must have one."""

import hmac
from base64 import urlsafe_b64encode

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied

from accounts.models import User


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth is untyped
    """Keeps the secrets of authenticator apps and recovery codes encrypted: a stolen backup opens no account."""

    def encrypt(self, text: str) -> str:
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return _cipher().decrypt(encrypted_text.encode()).decode()
        except InvalidToken as error:
            # The site's SECRET_KEY is another one: this factor opens nothing any more.
            raise PermissionDenied from error


def lacks_second_factor(user: User | AnonymousUser) -> bool:
    """Say whether this is a member of staff who must set up a second factor before anything else."""
    if not settings.STAFF_NEEDS_SECOND_FACTOR or not isinstance(user, User) or not user.is_staff:
        return False
    kinds = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
    return not Authenticator.objects.filter(user=user, type__in=kinds).exists()


def _cipher() -> Fernet:
    # A key of its own: what encrypts these must not be what signs anything.
    key = hmac.digest(settings.SECRET_KEY.encode(), b"accounts.second-factors.v1", "sha256")
    return Fernet(urlsafe_b64encode(key))
