"""Opens an uploaded file: JSON as it is, or the conversations inside a zip. Nothing is ever unpacked onto the disk."""

import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from django.conf import settings

from conversations.services.imports.faults import UnreadableFile

_CONVERSATIONS = re.compile(r"(?:[^/]+/)?conversations(?:-\d+)?\.json")
"""Where exports have them: at the top or in one folder, in one piece or numbered."""
_MOST_DIRECTORY_BYTES = 16_000_000
_MOST_TIMES_LARGER = 300
"""Text is packed to a tenth or so; what is packed tighter than this, and is large, was made to fill a disk."""
_LEAST_BOMB_BYTES = 20_000_000
_TIMES_THE_UPLOAD = 6
_ENCRYPTED = 0x1
_BROKEN = "The zip is damaged. Download the export once more."


@contextmanager
def documents(path: Path) -> Iterator[list["Document"]]:
    """Give the JSON documents of a file, to be read one after another. Raise `UnreadableFile`."""
    with path.open("rb") as file:
        if file.read(2) != b"PK":
            yield [Document(file, path.stat().st_size)]
            return
        try:
            with _archive(file) as archive:
                yield [Document((archive, entry), entry.file_size) for entry in _entries(archive)]
        except (BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise UnreadableFile(_BROKEN) from error


def _archive(file: BufferedReader) -> ZipFile:
    try:
        return ZipFile(cast(IO[bytes], _ModestReads(file)))
    except (ValueError, struct.error) as error:  # a list of contents that contradicts itself
        raise UnreadableFile(_BROKEN) from error


class Document:
    """A JSON document that can be read any number of times, from its beginning."""

    def __init__(self, source: BufferedReader | tuple[ZipFile, ZipInfo], byte_count: int) -> None:
        self._source = source
        self.byte_count = byte_count

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        if isinstance(self._source, tuple):
            archive, entry = self._source
            with archive.open(entry) as file:
                yield file
        else:
            self._source.seek(0)
            yield self._source


class _ModestReads:
    """A file that refuses to be read in very large pieces: `zipfile` reads a zip's whole list of contents at once."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self.seek, self.tell, self.close = file.seek, file.tell, file.close

    def read(self, count: int = -1) -> bytes:
        read = self._file.read(count if 0 <= count <= _MOST_DIRECTORY_BYTES else _MOST_DIRECTORY_BYTES + 1)
        if len(read) > _MOST_DIRECTORY_BYTES:
            raise BadZipFile
        return read

    def seekable(self) -> bool:
        return True


def _entries(archive: ZipFile) -> list[ZipInfo]:
    entries = [entry for entry in archive.infolist() if _CONVERSATIONS.fullmatch(entry.filename)]
    if not entries:
        raise UnreadableFile("There is no conversations.json in this zip. Upload the export as it was downloaded.")
    for entry in entries:
        _check(entry)
    if sum(entry.file_size for entry in entries) > _TIMES_THE_UPLOAD * settings.MAX_IMPORT_BYTES:
        raise _too_much()
    return sorted(entries, key=lambda entry: entry.filename)


def _check(entry: ZipInfo) -> None:
    if entry.flag_bits & _ENCRYPTED:
        raise UnreadableFile("The zip is encrypted. Upload one without a password.")
    if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise UnreadableFile("The zip is packed in a way that cannot be read here. Pack it as an ordinary zip.")
    if entry.file_size > max(_LEAST_BOMB_BYTES, _MOST_TIMES_LARGER * entry.compress_size):
        raise _too_much()


def _too_much() -> UnreadableFile:
    return UnreadableFile("What is in this zip is far larger than the zip itself; it is not unpacked.")
