"""Hands the file of an export out, piece by piece."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import IO

from django.http import StreamingHttpResponse

from conversations.exceptions import NotFound
from conversations.models import Export
from conversations.models.transfer import TransferStatus
from conversations.services.exports.asking import file_name
from conversations.services.transfers import files

_CHUNK_BYTES = 256 * 1024


def download(export: Export) -> StreamingHttpResponse:
    """Return the file as an attachment that nothing stores; raise `NotFound` where there is none, or none yet."""
    if export.status != TransferStatus.DONE:
        raise _not_there()
    try:
        file = files.path_of(files.EXPORTS, export.file).open("rb")
    except FileNotFoundError:
        raise _not_there() from None
    response = StreamingHttpResponse(_Chunks(file), content_type="application/zip")
    response["Content-Length"] = str(export.byte_count)
    response["Content-Disposition"] = f'attachment; filename="{file_name(export)}"'
    response["Cache-Control"] = "no-store"
    response["X-Content-Type-Options"] = "nosniff"
    return response


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The file piece by piece. The response closes it, also one of which nothing was read."""

    file: IO[bytes]

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        # In threads: a disk may be slow, and the loop serves everybody.
        while chunk := await asyncio.to_thread(self.file.read, _CHUNK_BYTES):
            yield chunk

    def close(self) -> None:
        self.file.close()


def _not_there() -> NotFound:
    return NotFound("The file of this export is not there yet, or not any more.", param="export_id")
