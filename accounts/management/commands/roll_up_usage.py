"""`manage.py roll_up_usage`: makes the roll-ups of a range of days anew from the ledger."""

from argparse import ArgumentParser
from datetime import date
from typing import Any

from django.core.management import BaseCommand, CommandError

from accounts.rollups import roll_up


class Command(BaseCommand):
    help = "Make the daily roll-ups of these days, both included, anew from the ledger."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("first", type=date.fromisoformat, help="The first day, in UTC, such as 2040-01-31.")
        parser.add_argument("last", type=date.fromisoformat, help="The last day.")

    def handle(self, *args: Any, **options: Any) -> None:
        first, last = options["first"], options["last"]
        if last < first:
            raise CommandError("The last day is before the first.")
        roll_up(first, last)
