"""Accounts and keys for tests, each in one line."""

from itertools import count

from allauth.account.models import EmailAddress
from django.test import Client

from accounts import api_keys
from accounts.models import APIKey, Tier, User

PASSWORD = "correct-horse-battery-7"
_number = count(1)


def make_user(email: str | None = None, *, tier: str = "free", password: str | None = None, **fields) -> User:
    """Make an account with a verified address; without a password it cannot sign in by one."""
    user = User.objects.create_user(email or f"person{next(_number)}@example.com", password, tier_id=tier, **fields)
    EmailAddress.objects.get_or_create(user=user, email=user.email, primary=True, verified=True)
    return user


def make_key(user: User, scopes=("chat", "read", "write", "account"), *, name="test", expires_at=None) -> str:
    """Make a key and return its secret."""
    return make_key_row(user, scopes, name=name, expires_at=expires_at)[1]


def make_key_row(user: User, scopes=("chat", "read", "write", "account"), *, name="test", expires_at=None):
    """Make a key and return its row and its secret."""
    row, secret = api_keys.make_key(user, name, scopes)
    if expires_at is not None:  # also one that lies in the past
        APIKey.objects.filter(pk=row.pk).update(expires_at=expires_at)
        row.refresh_from_db()
    return row, secret


def bearer(secret: str) -> dict[str, str]:
    """Return the header for Django's test client: `client.get(path, headers=bearer(secret))`."""
    return {"Authorization": f"Bearer {secret}"}


def signed_in_as(user: User) -> Client:
    """Return a browser in which the user has signed in."""
    client = Client()
    client.force_login(user)
    return client


def make_tier(*, requests: int, window_seconds: int = 3600, name: str | None = None) -> Tier:
    """Make a tier with room for so many requests."""
    return Tier.objects.create(
        name=name or f"tier-{next(_number)}", requests_per_window=requests, window_seconds=window_seconds
    )
