"""Sessions of an account that is erased, with the tokens of apps that depend on them."""

import re
from uuid import UUID

from django.contrib.sessions.models import Session

from accounts.erasure.naming import naming

NAME = "sessions"


def end_all(user_id: UUID) -> int:
    """End every session that names the account or its address, half-finished sign-ins too; return how many.

    Each is read for it: nothing else tells of a session that was not completed.
    """
    name = re.compile(naming(user_id), re.IGNORECASE)
    found = [
        session.session_key
        for session in Session.objects.iterator(chunk_size=1000)
        if name.search(str(session.get_decoded()))
    ]
    return Session.objects.filter(session_key__in=found).delete()[0]
