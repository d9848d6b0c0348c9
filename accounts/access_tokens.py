"""The app login's tokens: a short-lived access token, and the refresh token that renews it."""

from uuid import UUID

import structlog
from allauth.headless.tokens.strategies.jwt import JWTTokenStrategy
from allauth.headless.tokens.strategies.jwt.internal import decode_token, session_key_from_sid
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import transaction

from accounts.credentials import announce_revocation, session_credential

log = structlog.get_logger(__name__)


class AccessTokenStrategy(JWTTokenStrategy):  # type: ignore[misc]  # allauth is untyped
    """Lets each refresh token be used once. Sent again, somebody else has it too: the whole sign-in ends."""

    def refresh_token(self, refresh_token: str) -> tuple[str, str] | None:
        claims = decode_token(refresh_token, "refresh")
        if claims is None:
            return None
        session_key = session_key_from_sid(claims["sid"])
        with transaction.atomic():
            # allauth keeps in the session which refresh tokens are good: it reads, changes and writes it whole.
            session = Session.objects.select_for_update().filter(session_key=session_key).first()
            renewed: tuple[str, str] | None = super().refresh_token(refresh_token)
            if renewed is None and session is not None:
                _end_sign_in(session, claims["sub"])
        return renewed


def _end_sign_in(session: Session, user_id: str) -> None:
    log.warning("refresh_token_used_again", user_id=user_id)
    session_key = session.session_key
    UserSession.objects.filter(session_key=session_key).delete()
    session.delete()
    announce_revocation(UUID(user_id), session_credential(session_key))
