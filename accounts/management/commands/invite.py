"""`manage.py invite`: an invitation to sign up, as a link."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.exceptions import InvalidRequest
from accounts.invitations import invite
from accounts.models import Tier


class Command(BaseCommand):
    help = "Make an invitation to sign up and print its link, which is told this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--tier", help="The tier of the new account; left out, the default one.")
        parser.add_argument("--days", type=int, help="How long the link is good.")

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            _, link = invite(options["email"], tier=_tier(options["tier"]), days=options["days"])
        except InvalidRequest as error:
            raise CommandError(error.message) from error
        self.stdout.write(link)


def _tier(name: str | None) -> Tier | None:
    if name is None:
        return None
    tier = Tier.objects.filter(pk=name).first()
    if tier is None:
        raise CommandError(f"There is no tier {name}.")
    return tier
