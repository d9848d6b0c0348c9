"""The raw side of one response: chunks written straight to the connection, and the rude ways to end it."""

import socket
import struct
from asyncio import Transport

_READER_TOO_SLOW_BYTES = 1 << 20


class Wire:
    """A chunked response body. Goes past aiohttp's writer, which costs more per token than the token does."""

    def __init__(self, transport: Transport | None, *, is_silent: bool = False) -> None:
        self._transport = transport
        self._is_silent = is_silent

    def send(self, payload: bytes) -> None:
        """One HTTP chunk, in one write; nothing where the body is one document in the end."""
        if self._is_silent:
            return
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"%x\r\n%b\r\n" % (len(payload), payload))

    @property
    def is_backed_up(self) -> bool:
        """Whether the reader is so slow that more must wait."""
        return self._transport is not None and self._transport.get_write_buffer_size() > _READER_TOO_SLOW_BYTES

    def close(self) -> None:
        """FIN, without the chunk that ends a body."""
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """RST, at once."""
        if self._transport is None or self._transport.is_closing():
            return
        raw = self._transport.get_extra_info("socket")
        linger = socket.socket(fileno=socket.dup(raw.fileno()))
        with linger:
            linger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()
