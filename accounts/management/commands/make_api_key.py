"""`manage.py make_api_key`: makes a key, and the account where there is none; prints only the key."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management import BaseCommand, CommandError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone

from accounts.api_keys import make_key
from accounts.exceptions import InvalidRequest
from accounts.models import Tier, User
from accounts.models.user import default_tier_name


class Command(BaseCommand):
    help = "Make an API key, and the account where there is none, and print the key: it is shown this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", help="The account's email address.")
        parser.add_argument("--tier", help="The account's tier. An account that exists is moved to it.")
        parser.add_argument("--scopes", required=True, help="Comma-separated: chat, read, write, account.")
        parser.add_argument("--name", default="", help="What the key is for.")
        parser.add_argument("--expires-days", type=int, help="After how many days the key ends; never, if left out.")

    def handle(self, *args: Any, **options: Any) -> str:
        scopes = [scope.strip() for scope in options["scopes"].split(",") if scope.strip()]
        lifetime = _lifetime(options["expires_days"])
        with transaction.atomic():
            user = _account(options["email"], _tier(options["tier"]))
            try:
                _, secret = make_key(user, options["name"], scopes, timezone.now() + lifetime if lifetime else None)
            except InvalidRequest as error:
                raise CommandError(error.message) from error
        return secret


def _lifetime(days: int | None) -> timedelta | None:
    if days is None:
        return None
    if not 1 <= days <= 36_500:
        raise CommandError("--expires-days must be between 1 and 36500.")
    return timedelta(days=days)


def _tier(name: str | None) -> Tier | None:
    if name is None:
        return None
    tier = Tier.objects.filter(name=name).first()
    if tier is None:
        known = ", ".join(Tier.objects.order_by("name").values_list("name", flat=True))
        raise CommandError(f"There is no tier `{name}`; there are {known}.")
    return tier


def _account(email: str, tier: Tier | None) -> User:
    try:
        validate_email(email)
    except ValidationError as error:
        raise CommandError(f"`{email}` is not an email address.") from error
    user = User.objects.filter(email=email.lower()).first()
    if user is None:
        return User.objects.create_user(email, tier_id=tier.pk if tier else default_tier_name())
    if not user.is_active:
        raise CommandError(f"The account {user.email} is suspended.")
    if tier is not None and user.tier_id != tier.pk:
        user.tier = tier
        user.save(update_fields=["tier"])
    return user
