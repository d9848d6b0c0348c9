"""The names of credentials, and the word that one is no longer good."""

import hashlib
from functools import partial
from uuid import UUID

from django.db import transaction

from accounts.models import User
from accounts.signals import credentials_revoked


def session_credential(session_key: str) -> str:
    """Return the name of a session, and of every access token that depends on it. It does not reveal the session."""
    digest = hashlib.sha256(f"accounts.session:{session_key}".encode()).hexdigest()
    return f"session:{digest[:32]}"


def api_key_credential(api_key_id: UUID) -> str:
    """Return the name of an API key."""
    return f"api_key:{api_key_id}"


def announce_revocation(user_id: UUID, credential: str | None = None) -> None:
    """Say, once the transaction is committed, that a credential (`None`: each of the user's) is no longer good."""
    announce = partial(credentials_revoked.send_robust, sender=User, user_id=user_id, credential=credential)
    transaction.on_commit(announce)
