"""The faults of an answer's tokens: their texts, their numbers, their reason to end."""

from collections.abc import Callable, Iterator

from inference.testing.faults import Fault, FaultKind
from inference.testing.frames import Token

_MIB = 1 << 20


def _duplicate_index(tokens: Iterator[Token], fault: Fault) -> Iterator[Token]:
    for number, token in enumerate(tokens):
        yield token._replace(number=number) if number == fault.after else token


def _skipped_index(tokens: Iterator[Token], fault: Fault) -> Iterator[Token]:
    for number, token in enumerate(tokens):
        yield token._replace(number=number + 2) if number >= fault.after else token


def _missing_index(tokens: Iterator[Token], fault: Fault) -> Iterator[Token]:
    for number, token in enumerate(tokens):
        yield token._replace(number=None) if number == fault.after else token


def _finish_reason(tokens: Iterator[Token], fault: Fault) -> Iterator[Token]:
    for token in tokens:
        yield token if token.finish is None else token._replace(finish=fault.reason)


TEXT_FAULTS: dict[FaultKind, Callable[[str, Fault], str]] = {
    FaultKind.HUGE_TOKEN: lambda _text, fault: "x" * (fault.bytes or _MIB),
    FaultKind.LONE_SURROGATE: lambda text, _fault: text + "\ud83c",
    FaultKind.NUL: lambda text, _fault: text + "\0",
}
TOKEN_FAULTS: dict[FaultKind, Callable[[Iterator[Token], Fault], Iterator[Token]]] = {
    FaultKind.DUPLICATE_INDEX: _duplicate_index,
    FaultKind.SKIPPED_INDEX: _skipped_index,
    FaultKind.MISSING_INDEX: _missing_index,
    FaultKind.FINISH_REASON: _finish_reason,
}
