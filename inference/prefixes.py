"""What a prompt begins with, as a short chain of hashes: the same beginning, the same hashes, in every process."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from hashlib import sha256

from inference.messages import ChatMessage

type Prefix = tuple[int, ...]
"""The hash of each block and all before it, first block first."""

BLOCK_BYTES = 512
MOST_BLOCKS = 80
_HASH_BYTES = 7
_PIECE_CHARACTERS = 16_384
# Never part of UTF-8, so a role or a message cannot be mistaken for the end of another. A length in front would change
# while an answer is continued, and the prompt with it would no longer begin like the one before.
_SEPARATOR = b"\xff"


def _ends() -> tuple[int, ...]:
    """Return where blocks end, in bytes: every 512 at first, then each an eighth longer than all before it.

    A fixed size would make 1,600 blocks of a prompt of 200,000 tokens; these are 56, and what is left over behind the
    last whole block is an eighth of the prompt at most.
    """
    ends = [BLOCK_BYTES]
    while len(ends) < MOST_BLOCKS:
        ends.append(ends[-1] + max(BLOCK_BYTES, ends[-1] // 8 // BLOCK_BYTES * BLOCK_BYTES))
    return tuple(ends)


BLOCK_ENDS = _ends()


def blocks_in(byte_count: int) -> int:
    """Return how many whole blocks a prompt of so many bytes has."""
    return bisect_right(BLOCK_ENDS, byte_count)


def prefix_of(messages: Sequence[ChatMessage]) -> Prefix:
    """Return the hashes of a prompt's whole blocks; what a prompt adds at its end only adds to them.

    A prompt of 200,000 tokens costs 0.6 ms, one of 2,000 tokens 0.04.
    """
    hashing, position = sha256(), 0
    hashes: list[int] = []
    for piece in _rendered(messages):
        rest = memoryview(piece)
        while len(hashes) < MOST_BLOCKS and position + len(rest) >= BLOCK_ENDS[len(hashes)]:
            needed = BLOCK_ENDS[len(hashes)] - position
            hashing.update(rest[:needed])
            hashes.append(int.from_bytes(hashing.digest()[:_HASH_BYTES]))
            rest, position = rest[needed:], position + needed
        if len(hashes) == MOST_BLOCKS:
            break
        hashing.update(rest)
        position += len(rest)
    return tuple(hashes)


def _rendered(messages: Sequence[ChatMessage]) -> Iterator[bytes]:
    # In pieces: to ask the system for the memory of a whole long prompt costs more than to hash it.
    for message in messages:
        yield _SEPARATOR + message.role.encode() + _SEPARATOR
        for start in range(0, len(message.content), _PIECE_CHARACTERS):
            yield message.content[start : start + _PIECE_CHARACTERS].encode(errors="surrogatepass")
