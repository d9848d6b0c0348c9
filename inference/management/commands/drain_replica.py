"""`manage.py drain_replica URL`: gives a model server no new request; what it is writing comes to its end."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from inference.draining import set_draining
from inference.models import Replica


class Command(BaseCommand):
    help = "Give a model server no new request; what it is writing comes to its end. It takes a few seconds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("url", help="The server's address, as show_fleet has it.")
        parser.add_argument("--undo", action="store_true", help="Give it requests again.")

    def handle(self, *args: Any, **options: Any) -> None:
        rows = set_draining(options["url"], is_draining=not options["undo"])
        if not rows:
            raise CommandError(_unknown(options["url"]))
        served = ", ".join(row.version.name for row in rows)
        done = "gets requests again" if options["undo"] else "is draining"
        self.stdout.write(f"{rows[0].url} ({served}) {done}.")


def _unknown(url: str) -> str:
    known = sorted(set(Replica.objects.values_list("url", flat=True)))
    if not known:
        return f"There is no replica {url} in the catalogue, which is empty; seed_fleet fills it from MODEL_FLEET."
    return f"There is no replica {url}. Those known are: {', '.join(known)}."
