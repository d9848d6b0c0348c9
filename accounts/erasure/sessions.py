"""Sessions of an account that is erased, with the tokens of apps that depend on them."""

from uuid import UUID

from django.contrib.sessions.models import Session

from accounts.models import User

NAME = "sessions"


def end_all(user_id: UUID) -> int:
    """End every session that names the account or its address, half-finished sign-ins too; return how many.

    Each is read for it: nothing else tells of a session that was not completed.
    """
    email = User.objects.filter(pk=user_id).values_list("email", flat=True).first()
    names = [str(user_id), *([email] if email else [])]
    found = [
        session.session_key
        for session in Session.objects.iterator(chunk_size=1000)
        if any(name in str(session.get_decoded()) for name in names)
    ]
    return Session.objects.filter(session_key__in=found).delete()[0]
