"""Ending every sign-in of an account at once."""

from allauth.usersessions.models import UserSession

from accounts.credentials import announce_revocation
from accounts.models import User


def sign_out_everywhere(user: User) -> int:
    """End the user's sessions, and with them the access and refresh tokens that depend on them; say how many.

    Whatever is open with any credential of the user's (streams, sockets) ends once the transaction is committed.
    """
    sessions = list(UserSession.objects.filter(user=user))
    for session in sessions:
        session.end()
    announce_revocation(user.pk)
    return len(sessions)
