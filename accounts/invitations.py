"""Invitations: made for one address, told once as a link, good for one sign-up until they expire."""

import re
import secrets
from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.urls import reverse
from django.utils import timezone

from accounts.api_keys import digest_of
from accounts.exceptions import InvalidRequest
from accounts.models import Invitation, Tier, User

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


def invite(
    email: str, *, tier: Tier | None = None, by: User | None = None, days: int | None = None
) -> tuple[Invitation, str]:
    """Make an invitation and return it with its link, whose secret is nowhere kept; raises `InvalidRequest`."""
    days = settings.INVITATION_DAYS if days is None else days
    try:
        validate_email(email)
    except ValidationError as error:
        raise InvalidRequest("email: This is not an email address.", param="email") from error
    if not 1 <= days <= 365:
        raise InvalidRequest("days: An invitation is good for 1 to 365 days.", param="days")
    secret = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        email=email.lower(),
        tier=tier,
        digest=digest_of(secret),
        invited_by=by,
        expires_at=timezone.now() + timedelta(days=days),
    )
    return invitation, settings.SITE_URL + reverse("invitation", args=[secret])


def find(secret: str) -> Invitation | None:
    """Return the invitation with this secret, as long as it is good."""
    if not _SECRET.fullmatch(secret):
        return None
    good = Invitation.objects.filter(accepted_at=None, expires_at__gt=timezone.now())
    return good.select_related("tier").filter(digest=digest_of(secret)).first()


def accept(invitation: Invitation) -> bool:
    """Use it up; say whether nobody else has."""
    now = timezone.now()
    good = Invitation.objects.filter(pk=invitation.pk, accepted_at=None, expires_at__gt=now)
    return bool(good.update(accepted_at=now))
