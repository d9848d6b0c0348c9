"""The zip of an export, part by part; none of them is ever whole in memory."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from django.utils import timezone

from accounts.models import User
from conversations.services.exports import account_parts, conversation_parts, markdown_parts

_CHUNK_BYTES = 256 * 1024
_README = """\
# What is in this file

- `conversations.json`: all conversations with every branch, for programs. This site reads it back, also as the zip.
- `conversations/`: the shown branch of each conversation, to read. The list is below.
- `memories.json`, `preferences.json`: what models are told of you in every conversation.
- `usage.csv`, `usage.json`: what each answer used.
- `account.json`, `api_keys.json`, `invoices.json`: your account. Keys' secrets are not kept, so they are not here.

Temporary conversations are left out.

# Conversations

"""


@dataclass(frozen=True, slots=True)
class _Part:
    """A file of the zip, and what gives its text piece by piece."""

    name: str
    pieces: Callable[[User], Iterable[str]]


_PARTS = (
    _Part("conversations.json", conversation_parts.conversations),
    _Part("memories.json", account_parts.memories),
    _Part("preferences.json", account_parts.preferences),
    _Part("usage.json", account_parts.usage_json),
    _Part("usage.csv", account_parts.usage_csv),
    _Part("account.json", account_parts.account),
    _Part("api_keys.json", account_parts.api_keys),
    _Part("invoices.json", account_parts.invoices),
)


def write_archive(file: IO[bytes], user: User, *, keep_lease: Callable[[], None]) -> None:
    """Write all that the user has. The caller sees to it that all is read from one snapshot."""
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for part in _PARTS:
            _write(archive, part.name, part.pieces(user), keep_lease)
        listed = [_README]
        for page in markdown_parts.pages(user):
            _write(archive, page.name, page.pieces, keep_lease)
            listed.append(f"- [{json.dumps(page.title, ensure_ascii=False)[1:-1]}](<{page.name}>)\n")
        _write(archive, "README.md", listed, keep_lease)


def _write(archive: ZipFile, name: str, pieces: Iterable[str], keep_lease: Callable[[], None]) -> None:
    with _entry(archive, name) as entry:
        for chunk in _chunks(pieces):
            entry.write(chunk)
            keep_lease()


@contextmanager
def _entry(archive: ZipFile, name: str) -> Iterator[IO[bytes]]:
    info = ZipInfo(name, timezone.now().timetuple()[:6])
    info.compress_type = ZIP_DEFLATED
    info.external_attr = 0o600 << 16
    with archive.open(info, "w", force_zip64=True) as entry:
        yield entry


def _chunks(pieces: Iterable[str]) -> Iterator[bytes]:
    """Join small pieces: each written alone would cost more than what it holds."""
    waiting: list[bytes] = []
    count = 0
    for piece in pieces:
        encoded = piece.encode()
        waiting.append(encoded)
        count += len(encoded)
        if count >= _CHUNK_BYTES:
            yield b"".join(waiting)
            waiting, count = [], 0
    yield b"".join(waiting)
