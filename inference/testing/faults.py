"""The faults that can be asked for, which of them strike a request, and how often they already have."""

import itertools
from dataclasses import dataclass, field, fields
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import Any


class InvalidFaultError(ValueError):
    """A fault that does not exist, or a field it does not know."""


class FaultKind(StrEnum):
    """Before the headers · while streaming · in the bytes · in the tokens · after the client has gone."""

    DISCONNECT = "disconnect"
    DELAY_HEADERS = "delay_headers"
    STALL_HEADERS = "stall_headers"
    STATUS = "status"
    PLAIN_422 = "plain_422"
    HTML_502 = "html_502"
    EMPTY_401 = "empty_401"
    OVERLOADED_429 = "overloaded_429"
    HUGE_METRICS = "huge_metrics"

    WRONG_CONTENT_TYPE = "wrong_content_type"
    DELAY_FIRST_TOKEN = "delay_first_token"  # noqa: S105
    ERROR = "error"
    STALL = "stall"
    KEEP_ALIVES_ONLY = "keep_alives_only"
    CUT = "cut"
    CUT_MID_CHARACTER = "cut_mid_character"
    CLEAN_END = "clean_end"
    UNTERMINATED_END = "unterminated_end"

    DRIP = "drip"
    SPLIT = "split"
    COALESCE = "coalesce"
    GARBAGE = "garbage"
    INVALID_UTF8 = "invalid_utf8"
    LINE_ENDING = "line_ending"
    NO_SPACE = "no_space"
    BYTE_ORDER_MARK = "byte_order_mark"
    EXTRA_FRAME = "extra_frame"
    PADDED_FRAME = "padded_frame"

    HUGE_TOKEN = "huge_token"  # noqa: S105
    LONE_SURROGATE = "lone_surrogate"
    NUL = "nul"
    DUPLICATE_INDEX = "duplicate_index"
    SKIPPED_INDEX = "skipped_index"
    MISSING_INDEX = "missing_index"
    FINISH_REASON = "finish_reason"

    IGNORE_DISCONNECT = "ignore_disconnect"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `after` counts the tokens sent before it.

    A prompt's own fault strikes `times` times (once, unless it says `always`), and no continuation unless it says so.
    A standing one strikes without end, or `times` times, whatever has `match` in its last user message.
    A standing fault without a `path` strikes the routes that generate.
    """

    kind: FaultKind
    after: int = 0
    ms: float | None = None
    bytes: int | None = None
    how: str = "rst"
    keep_alive: bool = True
    error_type: str = "generation"
    message: str | None = None
    status: int = 500
    body: str = ""
    content_type: str = "text/plain; charset=utf-8"
    ending: str = "crlf"
    reason: str = "content_filter"
    count: int = 2
    times: int | None = None
    always: bool = False
    continuations: bool = False
    match: str = ""
    path: str | None = None
    id: int = field(default_factory=itertools.count(1).__next__, compare=False)


def parse_fault(wishes: dict[str, Any]) -> Fault:
    """A fault from its JSON form."""
    unknown = wishes.keys() - {known.name for known in fields(Fault)}
    if unknown:
        raise InvalidFaultError(f"unknown keys: {', '.join(sorted(unknown))}")
    try:
        return Fault(**{**wishes, "kind": FaultKind(wishes["kind"])})
    except (KeyError, ValueError) as error:
        raise InvalidFaultError(f"no such fault: {wishes.get('kind')}") from error


class Firings:
    """How often each fault struck each prompt; in a directory where several twins count together."""

    def __init__(self, directory: str | None) -> None:
        self._directory = Path(directory) if directory else None
        self._counts: dict[str, int] = {}

    def claim(self, key: str, times: int) -> bool:
        """Whether the fault may strike once more, and if so, that it has."""
        digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        if self._directory is not None:
            return any(_create(self._directory / f"{digest}.{number}") for number in range(times))
        self._counts[digest] = self._counts.get(digest, 0) + 1
        return self._counts[digest] <= times

    def clear(self) -> None:
        """Forget all: every fault may strike again."""
        self._counts.clear()
        for path in self._directory.iterdir() if self._directory else ():
            path.unlink(missing_ok=True)


class FaultBook:
    """The faults switched on at run time, and the choice of those that strike a request."""

    def __init__(self, firings: Firings) -> None:
        self._firings = firings
        self._standing: dict[int, Fault] = {}

    def switch_on(self, fault: Fault) -> int:
        """Let the fault strike every request that it matches, until it is switched off."""
        self._standing[fault.id] = fault
        return fault.id

    def switch_off(self, fault_id: int | None = None) -> None:
        """End one standing fault, or all."""
        if fault_id is None:
            self._standing.clear()
        else:
            self._standing.pop(fault_id, None)

    def forget_firings(self) -> None:
        """Let every prompt's faults strike anew."""
        self._firings.clear()

    def standing(self) -> tuple[Fault, ...]:
        """Every fault that is switched on."""
        return tuple(self._standing.values())

    def striking(self, path: str, prompt: str, *, asked: tuple[Fault, ...], continues: bool) -> tuple[Fault, ...]:
        """The faults for one request: those its prompt asks for, then the standing ones."""
        mine = tuple(
            fault
            for position, fault in enumerate(asked)
            if (fault.continuations or not continues)
            and (fault.always or self._firings.claim(f"{position}:{fault.kind}:{prompt}", fault.times or 1))
        )
        return mine + self._standing_for(path, prompt, generates=True)

    def striking_elsewhere(self, path: str) -> tuple[Fault, ...]:
        """The standing faults of a route that generates nothing."""
        return self._standing_for(path, "", generates=False)

    def _standing_for(self, path: str, prompt: str, *, generates: bool) -> tuple[Fault, ...]:
        return tuple(
            fault
            for fault in self.standing()
            if (fault.path == path or (fault.path is None and generates))
            and fault.match in prompt
            and (fault.times is None or self._firings.claim(f"standing:{fault.id}", fault.times))
        )


def _create(path: Path) -> bool:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
