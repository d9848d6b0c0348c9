"""Writes one reply: the handler that an inference worker runs on each job."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

import redis.asyncio
import structlog
from django.conf import settings

from accounts import quotas
from conversations.broadcasts import broadcast
from conversations.context.epochs import is_long
from conversations.context.material import Material
from conversations.exceptions import ContentTooLong
from conversations.models import Message
from conversations.services import attempts, claims, generations, requeueing
from conversations.services.answering import Answer, window_tokens_of
from conversations.services.attempts import Attempt
from conversations.services.context_cache import ContextCache
from conversations.services.keeping import keep_for_the_next_turn
from conversations.services.known_answers import KnownAnswers
from conversations.services.live_replies import LiveReplies, LiveReply
from conversations.services.observation import Observation, observed
from conversations.services.outcomes import Outcome, done_event, failure_event
from conversations.services.reading import most_history_bytes, read_material
from foundation.database import DATABASE_UNREACHABLE, in_database
from foundation.redis import REDIS_UNREACHABLE
from inference import token_stream
from inference.answer_cache import AnswerCache
from inference.cancellation import Cancellation, Stopped, Why
from inference.exceptions import UnknownModel
from inference.fleet import Fleet
from inference.jobs import Job
from inference.permits import Permit
from inference.publisher import Publisher
from inference.tgi.errors import InvalidRequest, ModelServerError
from inference.token_stream import Fenced

log = structlog.get_logger(__name__)

type TellEnded = Callable[[UUID], Awaitable[None]]
"""Tells whoever looks after complete answers of one that may give rise to a title or a summary. It does not raise."""

_RETRY_SECONDS = 0.5
_DRAIN_SECONDS = 2.0


@dataclass(slots=True)
class ReplyWriter:
    """Claims a generation and sees it to its end: answered, published, stored, told."""

    client: "redis.asyncio.Redis"
    fleet: Fleet
    publisher: Publisher
    live: LiveReplies
    cache: AnswerCache
    contexts: ContextCache
    tell_ended: TellEnded | None = None

    async def __call__(self, job: Job, cancellation: Cancellation, permit: Permit) -> None:
        try:
            attempt = await in_database(claims.claim, job.generation_id)
        except DATABASE_UNREACHABLE as error:
            # It is still queued there; the sweeper brings it back.
            log.warning("claim_failed", error=type(error).__name__)
            return
        if attempt is None:
            return
        writer = self.publisher.writer(attempt.generation_id, attempt.number)
        writer.on_fenced = lambda: cancellation.request(Why.FENCED)
        reply = LiveReply(attempt, writer, cancellation)
        self.live.add(reply)
        try:
            async with observed(self.client, job, attempt) as observation:
                log.info("reply_claimed", attempt=attempt.number, model=attempt.model)
                answer = Answer(reply, self.fleet, permit, KnownAnswers(self.cache, attempt))
                outcome = await self._see_to_the_end(reply, answer, observation)
        finally:
            self.live.remove(reply)
        if outcome is not None:
            await self._look_after(answer, outcome)

    async def _see_to_the_end(self, reply: LiveReply, answer: Answer, observation: Observation) -> Outcome | None:
        """Write, store and tell the answer; return how it ended, `None` where that is not for this worker to say."""
        permit = answer.permit
        try:
            outcome = await self._write(reply, answer)
        except Fenced:
            await self._settle_if_deleted(answer)
            return None
        except Stopped as stopped:
            if stopped.why is Why.FENCED:
                await self._settle_if_deleted(answer)
                return None
            if stopped.why is Why.HANDED_OVER:
                await self._hand_over(reply)
                return None
            outcome = await self._cancelled(answer)
        permit.tokens_in = 0 if answer.is_known else outcome.tokens_in
        permit.tokens_out = answer.decoded_tokens
        # The model server may begin the next answer while this one is stored.
        await permit.release()
        if not await self._stored(attempts.finish, reply.attempt, outcome):
            await self._settle_if_deleted(answer, outcome)
            return None
        observation.ended(outcome, version=answer.replica.version.name if answer.replica else "")
        await self._tell_the_end(reply, outcome)
        return outcome

    async def _look_after(self, answer: Answer, outcome: Outcome) -> None:
        """Do what nobody waits for: keep what later answers need, and have others do theirs."""
        await answer.keep(outcome)
        await keep_for_the_next_turn(answer, outcome, self.contexts)
        attempt = answer.reply.attempt
        is_complete = outcome.status == Message.Status.COMPLETE
        is_of_use = attempt.is_unnamed or is_long(outcome.record, outcome.tokens_in + outcome.tokens_out)
        if self.tell_ended is not None and is_complete and is_of_use:
            await self.tell_ended(attempt.generation_id)

    async def _write(self, reply: LiveReply, answer: Answer) -> Outcome:
        """Write the answer. What goes wrong becomes an outcome too; only a stop passes through, as `Stopped`."""
        attempt = reply.attempt
        try:
            async with reply.cancellation:
                if attempt.number > 1:
                    await self._take_over(reply, answer)
                if attempt.is_cancelled:
                    raise Stopped(Why.CANCELLED)
                if attempt.is_overdue:
                    return answer.failed("no_capacity", "No model server was free in time. Try again.")
                if attempt.number > attempts.MOST_ATTEMPTS:
                    return answer.failed("internal_error", "This answer failed repeatedly. Try again.")
                await answer.write(await self._read(attempt))
        except (ContentTooLong, UnknownModel, ModelServerError) as error:
            code, message = _told(error)
            log.warning("reply_failed", code=code, cause=error.code)
            return answer.failed(code, message)
        return answer.complete()

    async def _cancelled(self, answer: Answer) -> Outcome:
        """Return the outcome of an answer that was stopped, perhaps before this attempt at it knew what is paid."""
        attempt = answer.reply.attempt
        if answer.is_uncounted:
            try:
                await answer.take_stock(await self._read(attempt))
            except (ContentTooLong, UnknownModel, ModelServerError) as error:
                log.warning("not_counted", cause=error.code)
        return await answer.cancelled()

    async def _read(self, attempt: Attempt) -> Material:
        """Read what the prompt is made of, however long the database is away."""
        most_bytes = most_history_bytes(map(window_tokens_of, self.fleet.states.values()))
        while True:
            try:
                return await read_material(
                    attempt.opening,
                    self.contexts,
                    user_id=attempt.user_id,
                    conversation_id=attempt.conversation_id,
                    most_bytes=most_bytes,
                )
            except DATABASE_UNREACHABLE as error:
                log.warning("reading_failed", error=type(error).__name__)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _take_over(self, reply: LiveReply, answer: Answer) -> None:
        """Go on where the last attempt was: from its published text, or from the checkpoint where that is longer.

        While Redis is away nobody can say what readers have seen, so this waits for it.
        """
        attempt, writer = reply.attempt, reply.writer
        while True:
            try:
                published = await token_stream.begin(
                    self.client, attempt.generation_id, attempt.number, settings.STREAM_KEEP_SECONDS
                )
                break
            except REDIS_UNREACHABLE:
                await asyncio.sleep(_RETRY_SECONDS)
        writer.continue_from(published)
        answer.tell_no_more(published)
        if len(writer.text) < len(attempt.checkpointed_text):
            writer.seed(attempt.checkpointed_text)
        if writer.text:
            writer.write_event("notice", code="resumed", message="The answer was interrupted and goes on here.")

    async def _settle_if_deleted(self, answer: Answer, outcome: Outcome | None = None) -> None:
        """Settle an answer whose conversation was deleted: what was decoded is paid. Any other is another worker's."""
        attempt = answer.reply.attempt
        await answer.permit.release()
        if not await self._stored(attempts.is_deleted, attempt):
            return
        outcome = outcome or await answer.cancelled()
        if await self._stored(attempts.settle_deleted, attempt, outcome):
            await self._give_back(attempt, outcome)
            await broadcast(attempt.user_id, "limits_changed")

    async def _stored[**P](self, store: Callable[P, bool], *args: P.args, **kwargs: P.kwargs) -> bool:
        """Store the end, however long the database is away; the answer is safe in this process meanwhile."""
        while True:
            try:
                return await in_database(store, *args, **kwargs)
            except DATABASE_UNREACHABLE as error:
                log.warning("finish_failed", error=type(error).__name__)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _tell_the_end(self, reply: LiveReply, outcome: Outcome) -> None:
        attempt, writer = reply.attempt, reply.writer
        log.info("reply_ended", finish_reason=outcome.finish_reason, tokens_out=outcome.tokens_out)
        writer.write_end(failure_event(outcome), done_event(attempt.generation_id, outcome))
        async with asyncio.TaskGroup() as group:
            # At once: whoever sees the end may send the next message right away.
            group.create_task(self._give_back(attempt, outcome))
            group.create_task(self.publisher.drain(writer, _DRAIN_SECONDS))
        await broadcast(
            attempt.user_id,
            "conversation_changed",
            conversation_id=attempt.conversation_id,
            generation_id=attempt.generation_id,
            status=outcome.status,
        )
        await broadcast(attempt.user_id, "limits_changed")

    async def _give_back(self, attempt: Attempt, outcome: Outcome) -> None:
        """Free the place among the user's generations, and what the answer did not use of the minute's tokens."""
        await quotas.settled_async(
            self.client, attempt.user_id, attempt.generation_id, tokens_used=outcome.tokens_in + outcome.tokens_out
        )

    async def _hand_over(self, reply: LiveReply) -> None:
        await self.publisher.drain(reply.writer, _DRAIN_SECONDS)
        job = await in_database(
            requeueing.hand_over,
            reply.attempt,
            reply.writer.text or reply.attempt.checkpointed_text,
            first_token_at=reply.first_token_at,
        )
        if job is not None:
            await in_database(generations.enqueue, [job])


def _told(error: ContentTooLong | UnknownModel | ModelServerError) -> tuple[str, str]:
    """Return what a reader is told: a code of the contract, and a sentence with nothing internal in it."""
    match error:
        case ContentTooLong():
            return error.code, error.message
        case UnknownModel():
            return "no_capacity", error.message
        case InvalidRequest():
            return "invalid_request", "The model cannot read this request. Change the message and send it again."
        case _:
            return "no_capacity", "The model servers cannot answer now. Try again in a moment."
