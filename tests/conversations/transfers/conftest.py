"""A data directory of its own for each test, and a short way to bring a file in."""

import json
from dataclasses import dataclass

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from conversations.models import Import
from conversations.services.imports import reading, uploads
from tests.accounts.factories import make_user


@pytest.fixture(autouse=True)
def data_directory(settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"
    return settings.DATA_DIR


@pytest.fixture
def alice(db):
    return make_user("alice@example.com")


@pytest.fixture
def bob(db):
    return make_user("bob@example.com")


@dataclass(frozen=True)
class Brought:
    """What came of a file."""

    status: str
    report: dict

    @property
    def outcomes(self) -> list[tuple[str, str | None]]:
        return [(each["outcome"], each["reason"]) for each in self.report["conversations"]]


def bring(user, content) -> Brought:
    """Import a file's bytes, or what is to be its JSON, for a user."""
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    begun = uploads.accept(user, SimpleUploadedFile("conversations.json", raw))
    reading.read(begun.pk)
    ended = Import.objects.get(pk=begun.pk)
    return Brought(ended.status, ended.report)
