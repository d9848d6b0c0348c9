"""Writes one errand: what an inference worker runs on each job of the background class."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from conversations.services import errands
from conversations.services.errands import ErrandAttempt
from foundation.database import DATABASE_UNREACHABLE, in_database
from foundation.text import made_storable
from inference.cancellation import Cancellation, Stopped, Why
from inference.events import Finished, Piece
from inference.exceptions import UnknownModel
from inference.failover import Progress, stream_answer
from inference.fleet import Fleet
from inference.jobs import Job
from inference.messages import ChatRequest, SamplingOptions
from inference.permits import Permit
from inference.prefixes import prefix_of
from inference.replica_state import ReplicaState
from inference.tgi.errors import ModelServerError

log = structlog.get_logger(__name__)

_TEMPERATURE = 0.2
_NO_PATIENCE = 0.0
"""An errand that finds no place goes back to the queue: while it waited for one, no new job would be begun."""


@dataclass(slots=True)
class ErrandWriter:
    """Claims an errand and sees it to its end: written, given back or failed. Nobody reads along."""

    fleet: Fleet
    tell_written: Callable[[UUID], Awaitable[None]]
    """Has what was written settled soon. Should that be lost, the sweep settles it later."""
    _in_hand: list[tuple[ErrandAttempt, Cancellation]] = field(default_factory=list)

    async def write(self, job: Job, cancellation: Cancellation, permit: Permit) -> bool:
        """Write the errand; say whether there was one to write."""
        try:
            attempt = await in_database(errands.claim, job.generation_id)
        except DATABASE_UNREACHABLE as error:
            # It is still queued there; the sweep brings it back.
            log.warning("claim_failed", error=type(error).__name__)
            return True
        if attempt is None:
            return False
        cancellation.gives_way = job.gives_way
        entry = attempt, cancellation
        self._in_hand.append(entry)
        try:
            await self._see_to_the_end(attempt, cancellation, permit)
        except DATABASE_UNREACHABLE as error:
            # Its lease runs out, and the sweep brings it back.
            log.warning("errand_not_kept", error=type(error).__name__)
        finally:
            self._in_hand.remove(entry)
        return True

    async def renew(self) -> None:
        """Renew the leases of what is in hand; stop what is no longer ours, or was deleted."""
        in_hand = list(self._in_hand)
        if not in_hand:
            return
        try:
            still_ours = await in_database(errands.renew, [attempt for attempt, _ in in_hand])
        except DATABASE_UNREACHABLE as error:
            log.warning("errands_not_renewed", error=type(error).__name__)
            return
        for attempt, cancellation in in_hand:
            if attempt.errand_id not in still_ours:
                cancellation.request(Why.FENCED)

    async def _see_to_the_end(self, attempt: ErrandAttempt, cancellation: Cancellation, permit: Permit) -> None:
        if attempt.is_overdue:
            await self._fail(attempt, "no_capacity", is_final=True)
            return
        try:
            async with cancellation:
                text = await self._ask(attempt, permit)
        except Stopped as stopped:
            await permit.release()
            await self._interrupted(attempt, stopped.why)
            return
        except UnknownModel as error:
            await self._fail(attempt, error.code, is_final=True)
            return
        except ModelServerError as error:
            await self._fail(attempt, error.code, is_final=not error.retryable)
            return
        await permit.release()
        if await in_database(errands.finish, attempt, text):
            log.info("errand_written", characters=len(text))
            await self.tell_written(attempt.errand_id)

    async def _interrupted(self, attempt: ErrandAttempt, why: Why) -> None:
        log.info("errand_interrupted", why=why.name)
        if why is not Why.FENCED:
            await in_database(errands.give_back, attempt)

    async def _fail(self, attempt: ErrandAttempt, code: str, *, is_final: bool) -> None:
        has_failed = await in_database(errands.fail, attempt, is_final=is_final)
        log.warning("errand_failed", code=code, attempt=attempt.number, is_final=has_failed)

    async def _ask(self, attempt: ErrandAttempt, permit: Permit) -> str:
        async def build(state: ReplicaState, _progress: Progress) -> ChatRequest:
            options = SamplingOptions(max_new_tokens=attempt.max_tokens, temperature=_TEMPERATURE)
            return ChatRequest(attempt.prompt, options, request_id=str(attempt.errand_id), model=state.model_id)

        answer = stream_answer(
            self.fleet,
            self.fleet.catalog.find(attempt.model),
            build,
            so_far=Progress("", 0),
            permit=permit,
            prefix=prefix_of(attempt.prompt),
            conversation_key=attempt.conversation_id.bytes,
            patience_seconds=_NO_PATIENCE,
        )
        pieces: list[str] = []
        async with aclosing(answer) as events:
            async for event in events:
                match event:
                    case Piece():
                        pieces.append(event.text)
                    case Finished():
                        permit.tokens_in, permit.tokens_out = event.tokens_in or 0, event.tokens_out or len(pieces)
        return made_storable("".join(pieces))
