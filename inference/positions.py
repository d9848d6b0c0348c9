"""Where an event stands in a generation's stream. An event's id is its position, so any source can answer a resume.

A `token` event stands at the UTF-8 offset at which its text ends, with ordinal 0; everything else stands at the offset
that the text has reached, with the next ordinal. Hence a reader's last id says how many bytes it has, and what follows
can be served from the token stream, or, if that is lost, from the stored text, byte for byte.
"""

from typing import NamedTuple, Self

ORDINAL_BITS = 16
START_ORDINAL = 1
"""The `start` event, which the web tier writes."""
FIRST_WORKER_ORDINAL = 0x4000
"""Ordinals below belong to the web tier (`start`, `queued`); a worker's first event at offset 0 has this one."""
FAILURE_ORDINAL = 0xFFFE
"""The `error` or `blocked` event that tells why an answer ends."""
DONE_ORDINAL = 0xFFFF
"""The `done` event: nothing comes after it."""


class Position(NamedTuple):
    """A place in a stream; they are in order. `offset` counts bytes of UTF-8."""

    offset: int
    ordinal: int

    @classmethod
    def from_event_id(cls, event_id: int) -> Self:
        """Read a client's event id; a negative one is the beginning."""
        event_id = max(0, event_id)
        return cls(event_id >> ORDINAL_BITS, event_id & ((1 << ORDINAL_BITS) - 1))

    @classmethod
    def from_redis(cls, entry_id: str) -> Self:
        offset, _, ordinal = entry_id.partition("-")
        return cls(int(offset), int(ordinal))

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return the position of a reader who has exactly this text."""
        return cls(len(text.encode()), 0)

    @property
    def event_id(self) -> int:
        return (self.offset << ORDINAL_BITS) | self.ordinal

    @property
    def redis_id(self) -> str:
        return f"{self.offset}-{self.ordinal}"

    def after_text(self, byte_count: int) -> "Position":
        """Return where a token event of so many bytes stands."""
        return Position(self.offset + byte_count, 0)

    def next(self) -> "Position":
        """Return where the next event without text stands."""
        if self.offset == 0:
            return Position(0, max(self.ordinal + 1, FIRST_WORKER_ORDINAL))
        return Position(self.offset, self.ordinal + 1)


BEGINNING = Position(0, 0)


def text_from(text: str, offset: int) -> str:
    """Return the text from a UTF-8 offset on; an offset inside a character counts as the character's beginning."""
    encoded = text.encode()
    while 0 < offset < len(encoded) and encoded[offset] & 0xC0 == 0x80:
        offset -= 1
    return encoded[offset:].decode()
