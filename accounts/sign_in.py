"""How a signed-in person is loaded."""

from typing import Any

from allauth.account.auth_backends import AuthenticationBackend

from accounts.models import User


class EmailBackend(AuthenticationBackend):  # type: ignore[misc]
    """Signs in by email address and password, and loads the account together with its tier."""

    def get_user(self, user_id: Any) -> User | None:
        user = User.objects.select_related("tier").filter(pk=user_id).first()
        return user if user is not None and user.is_active else None
