"""Collects the static files where one of them has changed since the last time."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

STAMP = ".collected"


class Command(BaseCommand):
    help = "Run collectstatic, unless nothing has changed since it ran."

    def handle(self, *args: Any, **options: Any) -> None:
        stamp = Path(settings.STATIC_ROOT) / STAMP
        fingerprint = _fingerprint()
        if stamp.exists() and stamp.read_text() == fingerprint:
            return
        call_command("collectstatic", interactive=False, clear=True, verbosity=0)
        stamp.write_text(fingerprint)


def _fingerprint() -> str:
    """Return a digest of the own files, of the locks that decide the packages' files, and of the settings for both."""
    digest = hashlib.sha256(repr((settings.STATICFILES_FINDERS, settings.STORAGES, settings.NPM_FILES)).encode())
    for path in _sources():
        digest.update(f"{path.relative_to(settings.BASE_DIR)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources() -> Iterator[Path]:
    for lock in ("requirements.txt", "package-lock.json"):
        if (path := settings.BASE_DIR / lock).exists():
            yield path
    yield from sorted(path for path in (settings.BASE_DIR / "static").rglob("*") if path.is_file())
