"""What is open in one web process, by whom: it ends within seconds of the credential that it was opened with."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from accounts.callers import Caller
from accounts.exceptions import AccountsError
from accounts.standing import refusals_of
from foundation.database import DATABASE_UNREACHABLE, in_database

log = structlog.get_logger(__name__)

LOOK_SECONDS = 2.5
"""How often all that is open is looked at, whatever was told: a word may get lost, and an expiry tells nobody."""
_REST_SECONDS = 0.1
"""Between two looks at least, however much is told."""


class Opening:
    """A stream or a socket, and why it has to end, once it has."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.refusal: AccountsError | None = None
        self._end: Callable[[], None] | None = None

    def call_at_end(self, end: Callable[[], None] | None) -> None:
        """Have `end` called when it has to end, at once if that has come already."""
        self._end = end
        if end is not None and self.refusal is not None:
            end()

    def refuse(self, refusal: AccountsError) -> None:
        self.refusal = refusal
        if self._end is not None:
            self._end()


class Openings:
    """All that is open on one event loop."""

    def __init__(self) -> None:
        self._open: set[Opening] = set()
        self._told = asyncio.Event()

    @contextmanager
    def opened_by(self, caller: Caller) -> Iterator[Opening]:
        """Keep an eye on the caller's credential for as long as the block lasts."""
        opening = Opening(caller)
        self._open.add(opening)
        try:
            yield opening
        finally:
            self._open.discard(opening)

    def look_soon(self) -> None:
        """Look without waiting: somebody's credential is no longer good."""
        self._told.set()

    async def look_for_ever(self) -> None:
        """Look every few seconds, and whenever something was told; one statement for all."""
        while True:
            await self._wait()
            try:
                await self._look()
            except DATABASE_UNREACHABLE as error:
                log.warning("credentials_not_looked_at", error=type(error).__name__)
            except Exception:
                # Nothing would end any more: a fault is told, and the next look tries again.
                log.exception("credentials_not_looked_at")
            await asyncio.sleep(_REST_SECONDS)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._told.wait()
        except TimeoutError:
            return
        self._told.clear()

    async def _look(self) -> None:
        looked_at = [opening for opening in self._open if opening.refusal is None]
        if not looked_at:
            return
        refusals = await in_database(refusals_of, [opening.caller for opening in looked_at])
        for opening, refusal in zip(looked_at, refusals, strict=True):
            if refusal is not None:
                log.info("opening_ended", user_id=str(opening.caller.user.pk), code=refusal.code)
                opening.refuse(refusal)
