"""Who may sign up: everybody, those with an invitation, those of some domains, nobody (`SIGN_UP`)."""

import idna
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from accounts import invitations
from accounts.models import Invitation, User

INVITE, DOMAIN, CLOSED = "invite", "domain", "closed"
SESSION_KEY = "invitation"
HEADER = "X-Invitation"


def is_open_to(request: HttpRequest) -> bool:
    """Say whether the sign-up page is shown: which address will be given is not known yet."""
    if settings.SIGN_UP == INVITE:
        return invitation_of(request) is not None
    return bool(settings.SIGN_UP != CLOSED)


def check_new_address(request: HttpRequest, email: str) -> None:
    """Raise `ValidationError` unless an account may be made with this address."""
    if settings.SIGN_UP == CLOSED:
        raise ValidationError("Nobody can sign up here.")
    if settings.SIGN_UP == INVITE:
        invitation = invitation_of(request)
        if invitation is None or invitation.email != email.lower():
            raise ValidationError("Your invitation is for another address, or no longer good.")
    check_domain(email)


def check_domain(email: str) -> None:
    """Raise `ValidationError` where only addresses of some domains are taken, and this is of none of them."""
    if settings.SIGN_UP == DOMAIN and domain_of(email) not in {_canonical(name) for name in settings.SIGN_UP_DOMAINS}:
        raise ValidationError("Use an address of this organisation.")


def accept_invitation(request: HttpRequest, user: User) -> None:
    """Use up the invitation that the new account came with, and give the account its tier."""
    invitation = invitation_of(request)
    if invitation is None or invitation.email != user.email.lower() or not invitations.accept(invitation):
        return
    if invitation.tier is not None:
        user.tier = invitation.tier
        user.save(update_fields=["tier"])


def invitation_of(request: HttpRequest) -> Invitation | None:
    """Return the good invitation whose link was followed in this session, or whose secret the app's request carries."""
    secret = request.headers.get(HEADER) or request.session.get(SESSION_KEY, "")
    return invitations.find(secret)


def domain_of(email: str) -> str | None:
    """Return the domain of an address as mail servers compare it; `None` for one that cannot be a domain."""
    return _canonical(email.rpartition("@")[2])


def _canonical(domain: str) -> str | None:
    try:
        return idna.encode(domain.strip().rstrip("."), uts46=True).decode().lower()
    except idna.IDNAError:
        return None
