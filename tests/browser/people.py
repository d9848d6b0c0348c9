"""Run inside the site's own settings: makes people who are signed in, and prints their cookies as JSON."""

import json

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from accounts.models import Tier, User

COUNT = 150
PASSWORD = "correct-horse-battery-7"


def make_people() -> None:
    Tier.objects.create(name="tiny", requests_per_window=1)
    people = [_make_person(f"person{number}@example.com", "free") for number in range(COUNT)]
    print(json.dumps({"people": people, "limited": _make_person("limited@example.com", "tiny")}))


def make_staff(email: str) -> None:
    print(json.dumps(_make_person(email, "free", is_staff=True, is_superuser=True)))


def _make_person(email: str, tier: str, **fields: bool) -> dict[str, str]:
    user = User.objects.create_user(email, tier_id=tier, **fields)
    EmailAddress.objects.get_or_create(user=user, email=email, primary=True, verified=True)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return {"email": email, "session": session.session_key}
