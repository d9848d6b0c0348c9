"""The twin's tokens: how a text falls into pieces, and the pieces of a made-up answer."""

import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from random import Random
from zlib import crc32

EOS_ID = 2
EOS_TEXT = "</s>"

_PIECE = re.compile(r" ?[A-Za-z0-9_]+|.", re.DOTALL)

# A character that needs several tokens comes as empty texts and then whole, as a byte-level tokeniser's stream has it.
_VOCABULARY: tuple[tuple[str, ...], ...] = (
    (" the",), (" model",), (" answers",), (" slowly",), (" and",), (" rather",), (" than",), (" wrong",), (" a",),
    (" conversation",), (" is",), (" never",), (" lost",), (" when",), (" one",), (" server",), (" dies",),
    (" another",), (" goes",), (" on",), (",",), (".",), ("\n",), (" ",), ("\n\n",), (" data",), (":",), (" [",),
    ("DONE",), ("]",), (" `",), ("code",), ("`",), (" **",), ("bold",), ("**",), (" naïve",), (" café",),
    ("", "我"), ("", "很"), ("", "好"), (" ", "", "기"), ("", "", "", "🤗"), (" ", "", "", "😄"),
    ("", "", "👨", "\u200d", "", "👩"), ("", "\u2028"), ("\u0085",), ("e", "\u0301"),
)  # fmt: skip


def piece_id(text: str) -> int:
    """A stable token id, never one of the special ones."""
    return 3 + crc32(text.encode("utf-8", "surrogatepass")) % 32_000


def split_into_pieces(text: str) -> list[str]:
    """The tokens of a text; a character of n > 2 bytes is n - 2 empty pieces and then the character."""
    return [piece for match in _PIECE.finditer(text) for piece in _with_empties(match.group())]


def count_pieces(text: str) -> int:
    """How many tokens a prompt has. Cheaper than splitting: characters of several bytes count once."""
    return sum(1 for _ in _PIECE.finditer(text))


def spans(text: str) -> Iterator[tuple[str, int, int]]:
    """Each prompt token with its byte offsets in the text."""
    offset = 0
    for match in _PIECE.finditer(text):
        width = len(match.group().encode("utf-8", "surrogatepass"))
        yield match.group(), offset, offset + width
        offset += width


@lru_cache(maxsize=64)
def made_up_pieces(prompt: str, token_count: int, at_most: int | None = None) -> tuple[str, ...]:
    """Exactly `token_count` pieces, a pure function of the prompt's text; `at_most` gives only so many of the first."""
    seed = int.from_bytes(blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=8).digest())
    random = Random(seed)  # noqa: S311
    wanted = token_count if at_most is None else min(at_most, token_count)
    pieces: list[str] = []
    for group in random.choices(_VOCABULARY, k=wanted):
        room = token_count - len(pieces)
        pieces.extend(group if len(group) <= room else ("." for _ in range(room)))
        if len(pieces) >= wanted:
            break
    return tuple(pieces[:wanted])


def _with_empties(piece: str) -> list[str]:
    width = len(piece.encode("utf-8", "surrogatepass")) if len(piece) == 1 else 1
    return [""] * max(0, width - 2) + [piece]
