"""`manage.py seed_fleet`: brings what `MODEL_FLEET` says into the catalogue's tables."""

from typing import Any

from django.core.management.base import BaseCommand

from inference.exceptions import InvalidFleet
from inference.fleet_seeding import seed_fleet


class Command(BaseCommand):
    help = "Bring the changes of MODEL_FLEET since the last time into the catalogue; what staff made or changed stays."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = seed_fleet()
        except InvalidFleet as error:
            self.stderr.write(error.message)
            raise SystemExit(2) from error
        for sentence in done:
            self.stdout.write(sentence)
