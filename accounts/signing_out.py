"""Ending every sign-in of an account at once."""

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import transaction

from accounts.credentials import announce_revocation
from accounts.models import User


@transaction.atomic
def sign_out_everywhere(user: User) -> int:
    """End the user's sessions, and with them the access and refresh tokens that depend on them; say how many.

    Whatever is open with any credential of the user's (streams, sockets) ends once the transaction is committed.
    """
    known = UserSession.objects.filter(user=user)
    ended, _ = Session.objects.filter(session_key__in=list(known.values_list("session_key", flat=True))).delete()
    known.delete()
    announce_revocation(user.pk)
    return ended
