"""Invitations: made for one address, told once as a link, good for one sign-up until they expire."""

import re
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import QuerySet
from django.template.loader import render_to_string
from django.utils import timezone

from accounts.api_keys import digest_of
from accounts.derived_secrets import derived_secret
from accounts.exceptions import InvalidRequest
from accounts.models import Invitation, Tier, User
from foundation.addresses import whole_address
from foundation.background import send_after_commit
from foundation.ids import new_id

_PURPOSE = b"accounts.invitation.v1:"
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
_MAIL = "accounts.tasks.mail_invitation"


def invite(
    email: str, *, tier: Tier | None = None, by: User | None = None, days: int | None = None, by_mail: bool = False
) -> tuple[Invitation, str]:
    """Make an invitation and return it with its link, whose secret is nowhere kept; raises `InvalidRequest`.

    With `by_mail` the link is sent to the address as well, once the transaction is committed.
    """
    days = settings.INVITATION_DAYS if days is None else days
    try:
        validate_email(email)
    except ValidationError as error:
        raise InvalidRequest("email: This is not an email address.", param="email") from error
    if not 1 <= days <= 365:
        raise InvalidRequest("days: An invitation is good for 1 to 365 days.", param="days")
    identifier = new_id()
    secret = derived_secret(_PURPOSE, identifier)
    invitation = Invitation.objects.create(
        id=identifier,
        email=email.lower(),
        tier=tier,
        digest=digest_of(secret),
        invited_by=by,
        expires_at=timezone.now() + timedelta(days=days),
        by_mail=by_mail,
    )
    if by_mail:
        send_after_commit(_MAIL, identifier)
    return invitation, _link(secret)


def find(secret: str) -> Invitation | None:
    """Return the invitation with this secret, as long as it is good."""
    if not _SECRET.fullmatch(secret):
        return None
    return good().select_related("tier").filter(digest=digest_of(secret)).first()


def accept(invitation: Invitation) -> bool:
    """Use it up; say whether nobody else has."""
    return bool(good().filter(pk=invitation.pk).update(accepted_at=timezone.now()))


def owed_mails() -> list[UUID]:
    """Return the invitations whose link has still to be sent."""
    return list(_to_mail().values_list("pk", flat=True))


@transaction.atomic
def mail(invitation_id: UUID) -> None:
    """Send the link, once, and only while it is good; raise what the mail server makes of it."""
    invitation = _to_mail().select_for_update().filter(pk=invitation_id).first()
    if invitation is None:
        return
    told = {"link": _link(derived_secret(_PURPOSE, invitation.pk)), "invitation": invitation, "site": settings.SITE_URL}
    send_mail("You are invited", render_to_string("account/invitation_mail.txt", told), None, [invitation.email])
    Invitation.objects.filter(pk=invitation.pk).update(mailed_at=timezone.now())


def good() -> QuerySet[Invitation]:
    """Return the invitations that can be followed."""
    return Invitation.objects.filter(accepted_at=None, expires_at__gt=timezone.now())


def _to_mail() -> QuerySet[Invitation]:
    return good().filter(by_mail=True, mailed_at=None)


def _link(secret: str) -> str:
    return whole_address("invitation", secret)
