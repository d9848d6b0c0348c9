"""Makes the first staff account of a fresh site."""

import secrets
from typing import Any

from allauth.account.models import EmailAddress
from django.core.management.base import BaseCommand
from django.db import transaction

from accounts.models.user import User

EMAIL = "admin@localhost"


class Command(BaseCommand):
    help = "Make a staff account, and print its password this once, unless there is one already."

    def handle(self, *args: Any, **options: Any) -> None:
        if User.objects.filter(is_staff=True).exists():
            return
        password = secrets.token_urlsafe(12)
        with transaction.atomic():
            user = User.objects.create_superuser(EMAIL, password)
            EmailAddress.objects.update_or_create(user=user, email=EMAIL, defaults={"verified": True, "primary": True})
        self.stdout.write(f"sign in as {EMAIL} with the password {password} (shown only now; the admin is at /admin/)")
