"""What Redis counts of an account that is erased: its quotas, and how often it signed in or asked for mail."""

from uuid import UUID

from allauth.account import app_settings
from allauth.core.internal.ratelimit import get_cache_key, parse_rates
from django.core.cache import cache
from django.http import HttpRequest

from accounts.models import SHARED_POOL, ModelLimit, User
from accounts.quotas import windows

_APPS = ("allauth.account", "allauth.mfa", "allauth")


def erase(user_id: UUID) -> dict[str, int]:
    """Forget the account's rate limits; raises one of `REDIS_UNREACHABLE` while Redis is away.

    Those by network address are nobody's, and end by themselves within minutes.
    """
    return {
        "quotas": windows.forget(user_id, _pools()),
        "limits of signing in": sum(map(_forget_sign_ins, User.objects.filter(pk=user_id))),
    }


def _pools() -> list[str]:
    return [SHARED_POOL, *ModelLimit.objects.values_list("model", flat=True).distinct()]


def _forget_sign_ins(user: User) -> int:
    names = [f"{name}{lock}" for name in _sign_in_keys(user) for lock in ("", ":lock")]
    found = cache.get_many(names)
    cache.delete_many(list(found))
    return len(found)


def _sign_in_keys(user: User) -> list[str]:
    request = HttpRequest()
    people = [user.email.lower(), f"mfa-auth-user-{user.pk}"]
    return [
        get_cache_key(request, app=app, action=action, rate=rate, key=person, user=user)
        for app in _APPS
        for action, rates in app_settings.RATE_LIMITS.items()
        for rate in parse_rates(rates)
        if rate.per in ("user", "key")
        for person in people
    ]
