"""What the twin saw: every request, what was sent for it, when it was closed and by whom."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

_KEPT_RECORDS = 20_000

type Side = Literal["client", "server"]


@dataclass(slots=True)
class Record:
    """One generation request. Times are wall-clock seconds, and monotonic ones of the machine beside them."""

    number: int
    path: str
    prompt: str
    body: object
    is_continuation: bool
    headers: dict[str, str]
    ledger: "Ledger" = field(repr=False)
    started_at: float = field(default_factory=time.time)
    started_monotonic: float = field(default_factory=time.monotonic)
    first_token_monotonic: float | None = None
    tokens_sent: int = 0
    closed_at: float | None = None
    closed_monotonic: float | None = None
    closed_by: Side | None = None
    outcome: str | None = None
    faults: tuple[str, ...] = ()
    is_held: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the answer is still under way."""
        return self.closed_monotonic is None

    def sent(self, token_count: int) -> None:
        """Count tokens that went out."""
        if token_count:
            if self.first_token_monotonic is None:
                self.first_token_monotonic = time.monotonic()
            self.tokens_sent += token_count
            if self.ledger.is_watched:
                self.ledger.changed()

    def hold(self, *, is_held: bool) -> None:
        """Note that the answer waits to be released, or no longer does."""
        self.is_held = is_held
        self.ledger.changed()

    def close(self, side: Side, outcome: str) -> None:
        """Note the end; only the first one counts."""
        if self.is_open:
            self.closed_at, self.closed_monotonic = time.time(), time.monotonic()
            self.closed_by, self.outcome = side, outcome
            self.ledger.changed()

    def as_json(self) -> dict[str, Any]:
        """All but the body and the headers, which `/_twin/requests/{number}` has."""
        names = self.__slots__
        return {name: getattr(self, name) for name in names if name not in ("ledger", "body", "headers")}


class Ledger:
    """The records since the last reset, and a way to wait until they say something."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque(maxlen=_KEPT_RECORDS)
        self._watchers: set[asyncio.Event] = set()
        self._seen = 0

    @property
    def is_watched(self) -> bool:
        """Whether anybody waits for a change."""
        return bool(self._watchers)

    @property
    def seen_count(self) -> int:
        """Requests ever seen."""
        return self._seen

    @property
    def records(self) -> tuple[Record, ...]:
        """Every record, oldest first."""
        return tuple(self._records)

    @property
    def open_records(self) -> tuple[Record, ...]:
        """The answers under way."""
        return tuple(record for record in self._records if record.is_open)

    def open(self, path: str, prompt: str, body: object, headers: dict[str, str], *, is_continuation: bool) -> Record:
        """Begin the record of one request."""
        self._seen += 1
        record = Record(self._seen, path, prompt, body, is_continuation, headers, self)
        self._records.append(record)
        self.changed()
        return record

    def changed(self) -> None:
        """Wake whoever waits."""
        for watcher in self._watchers:
            watcher.set()

    def clear(self) -> None:
        """Forget what is closed; numbers go on."""
        self._records = deque(self.open_records, maxlen=_KEPT_RECORDS)
        self.changed()

    async def wait_for(self, predicate: Callable[["Ledger"], bool], *, timeout_s: float) -> bool:
        """Whether the predicate came true in time. Looked at whenever anything changes."""
        watcher = asyncio.Event()
        self._watchers.add(watcher)
        try:
            async with asyncio.timeout(timeout_s):
                while not predicate(self):
                    await watcher.wait()
                    watcher.clear()
        except TimeoutError:
            return False
        finally:
            self._watchers.discard(watcher)
        return True

    def counts(self) -> dict[str, int]:
        """How many requests are in which state, and the tokens of all."""
        records = self._records
        return {
            "open": sum(record.is_open for record in records),
            "held": sum(record.is_held for record in records),
            "closed": sum(not record.is_open for record in records),
            "closed_by_client": sum(record.closed_by == "client" for record in records),
            "closed_by_server": sum(record.closed_by == "server" for record in records),
            "seen": len(records),
            "tokens": sum(record.tokens_sent for record in records),
        }

    def as_json(self) -> dict[str, Any]:
        """The whole report."""
        now = {"now": time.time(), "now_monotonic": time.monotonic()}
        return now | self.counts() | {"requests": [record.as_json() for record in self._records]}
