"""The app login's tokens: a short-lived access token, and the refresh token that renews it."""

from allauth.headless.tokens.strategies.jwt import JWTTokenStrategy
from allauth.headless.tokens.strategies.jwt.internal import decode_token, session_key_from_sid
from django.contrib.sessions.models import Session
from django.db import transaction


class AccessTokenStrategy(JWTTokenStrategy):  # type: ignore[misc]  # allauth is untyped
    """Lets each refresh token be used once, however often it is sent at once."""

    def refresh_token(self, refresh_token: str) -> tuple[str, str] | None:
        claims = decode_token(refresh_token, "refresh")
        if claims is None:
            return None
        with transaction.atomic():
            # allauth keeps in the session which refresh tokens are good: it reads, changes and writes it whole.
            session_key = session_key_from_sid(claims["sid"])
            Session.objects.select_for_update().filter(session_key=session_key).first()
            renewed: tuple[str, str] | None = super().refresh_token(refresh_token)
        return renewed
