"""Writes one reply: the handler that an inference worker runs on each job."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import redis.asyncio
import structlog
from django.conf import settings
from django.utils import timezone

from conversations.broadcasts import broadcast
from conversations.context.assemble import assemble
from conversations.context.budget import Prompt, fit
from conversations.exceptions import ContentTooLong
from conversations.models import Message
from conversations.services import attempts, generations
from conversations.services.attempts import Attempt, Outcome
from conversations.services.live_replies import LiveReplies, LiveReply
from foundation.database import DATABASE_UNREACHABLE, in_database
from foundation.redis import REDIS_UNREACHABLE
from foundation.text import made_storable
from inference import token_stream
from inference.cancellation import Cancellation, Stopped, Why
from inference.catalog import Catalog
from inference.events import Finished, Piece, Reasoning
from inference.exceptions import UnknownModel
from inference.failover import Chosen, Progress, stream_answer
from inference.fleet import Fleet, ReplicaState
from inference.jobs import Job
from inference.messages import ChatMessage, ChatRequest, SamplingOptions
from inference.publisher import Publisher, TokenStreamWriter
from inference.tgi.errors import InvalidRequest, ModelServerError
from inference.token_stream import Fenced

log = structlog.get_logger(__name__)

_RETRY_SECONDS = 0.5
_DRAIN_SECONDS = 2.0
_COUNT_SECONDS = 2.0


@dataclass(slots=True)
class Tally:
    """What is known of an answer while it is written, beside its text."""

    so_far: Progress
    decoded_tokens: int = 0
    first_token_at: datetime | None = None
    finished: Finished | None = None
    replica: ReplicaState | None = None
    model_version: str = ""
    prompt: tuple[ChatMessage, ...] = ()


@dataclass(slots=True)
class ReplyWriter:
    """Claims a generation and sees it to its end: assembled, answered, published, stored, settled."""

    client: "redis.asyncio.Redis"
    catalog: Catalog
    fleet: Fleet
    publisher: Publisher
    live: LiveReplies

    async def __call__(self, job: Job, cancellation: Cancellation) -> None:
        try:
            attempt = await in_database(attempts.claim, job.generation_id)
        except DATABASE_UNREACHABLE as error:
            # It is still queued there; the sweeper brings it back.
            log.warning("claim_failed", error=type(error).__name__)
            return
        if attempt is None:
            return
        log.info("reply_claimed", attempt=attempt.number, model=attempt.model)
        writer = self.publisher.writer(attempt.generation_id, attempt.number)
        writer.on_fenced = lambda: cancellation.request(Why.FENCED)
        reply = LiveReply(attempt, writer, cancellation)
        self.live.add(reply)
        try:
            await self._see_to_the_end(reply)
        finally:
            self.live.remove(reply)

    async def _see_to_the_end(self, reply: LiveReply) -> None:
        attempt, writer = reply.attempt, reply.writer
        tally = Tally(Progress("", 0), first_token_at=attempt.first_token_at)
        try:
            outcome = await self._outcome(reply, tally)
        except Fenced:
            return
        except Stopped as stopped:
            if stopped.why is Why.FENCED:
                return
            if stopped.why is Why.HANDED_OVER:
                await self._hand_over(reply)
                return
            outcome = await self._cancelled(writer, tally)
        if await self._finish(attempt, outcome):
            await self._tell_the_end(attempt, outcome, writer)

    async def _outcome(self, reply: LiveReply, tally: Tally) -> Outcome:
        """Write the answer. What goes wrong becomes an outcome too; only a stop passes through, as `Stopped`."""
        attempt, writer = reply.attempt, reply.writer
        if attempt.is_cancelled:
            reply.cancellation.request(Why.CANCELLED)
        try:
            async with reply.cancellation:
                if attempt.number > 1:
                    await self._take_over(attempt, writer)
                if attempt.is_overdue:
                    return _failed(writer, tally, "no_capacity", "No model server was free in time. Try again.")
                if attempt.number > attempts.MOST_ATTEMPTS:
                    return _failed(writer, tally, "internal_error", "This answer failed repeatedly. Try again.")
                await self._answer(attempt, writer, tally)
        except ContentTooLong as error:
            return _failed(writer, tally, error.code, error.message)
        except UnknownModel as error:
            return _failed(writer, tally, "no_capacity", error.message)
        except InvalidRequest:
            return _failed(writer, tally, "invalid_request", "The model cannot read this request. Change it.")
        except ModelServerError as error:
            log.warning("reply_failed", code=error.code)
            return _failed(writer, tally, "no_capacity", "The model servers cannot answer now. Try again in a moment.")
        finished = tally.finished
        assert finished is not None
        before = tally.so_far.decoded_tokens
        return Outcome(
            status=Message.Status.COMPLETE,
            finish_reason=finished.reason,
            content=writer.text,
            tokens_in=max(0, (finished.tokens_in or 0) - before),
            tokens_cached=finished.tokens_cached or 0,
            tokens_out=tally.decoded_tokens if finished.tokens_out is None else before + finished.tokens_out,
            **_circumstances(tally),
        )

    async def _take_over(self, attempt: Attempt, writer: TokenStreamWriter) -> None:
        """Go on where the last attempt was: from its published text, or from the checkpoint where that is all there is.

        While Redis is away nobody can say what readers have seen, so this waits for it.
        """
        while True:
            try:
                published = await token_stream.begin(
                    self.client, attempt.generation_id, attempt.number, settings.STREAM_KEEP_SECONDS
                )
                break
            except REDIS_UNREACHABLE:
                await asyncio.sleep(_RETRY_SECONDS)
        writer.continue_from(published)
        if len(writer.text) < len(attempt.checkpointed_text):
            writer.seed(attempt.checkpointed_text)
        if writer.text:
            writer.write_event("notice", code="resumed", message="The answer was interrupted and goes on here.")

    async def _answer(self, attempt: Attempt, writer: TokenStreamWriter, tally: Tally) -> None:
        model = self.catalog.find(attempt.model)
        tally.prompt = await in_database(assemble, attempt.conversation_id, attempt.question_id, attempt.instructions)
        if writer.text:
            tally.so_far = Progress(writer.text, await self._decoded_before(model, tally.prompt, writer.text))
            tally.decoded_tokens = tally.so_far.decoded_tokens
        told_trimmed = False

        async def build(state: ReplicaState, progress: Progress) -> ChatRequest:
            nonlocal told_trimmed
            tally.replica = state
            tally.so_far = progress
            prompt = await self._fitted(attempt, tally.prompt, state, progress)
            if prompt.is_trimmed and not told_trimmed:
                told_trimmed = True
                text = "The conversation is longer than the model can read; its beginning was left out."
                writer.write_event("notice", code="context_trimmed", message=text)
            return ChatRequest(prompt.messages, _sampling(attempt.options, prompt), str(attempt.generation_id), None)

        async with aclosing(stream_answer(self.fleet, model, build, so_far=tally.so_far)) as events:
            async for event in events:
                match event:
                    case Piece(text=text, token_count=token_count):
                        tally.first_token_at = tally.first_token_at or timezone.now()
                        tally.decoded_tokens += token_count
                        writer.write_text(made_storable(text))
                    case Reasoning(text=text, token_count=token_count):
                        tally.decoded_tokens += token_count
                        writer.write_event("reasoning", text=text)
                    case Chosen():
                        tally.model_version = event.model_id or ""
                        if event.is_resumed:
                            writer.write_event("notice", **_RESUMED)
                    case Finished():
                        tally.finished = event

    async def _fitted(
        self, attempt: Attempt, prompt: tuple[ChatMessage, ...], state: ReplicaState, progress: Progress
    ) -> Prompt:
        window_tokens = state.info.max_total_tokens if state.info else None
        messages = prompt
        if progress.text:
            messages = (*prompt, ChatMessage("assistant", progress.text))
        wanted = max(1, int(attempt.options["max_tokens"]) - progress.decoded_tokens)
        return await fit(messages, window_tokens=window_tokens, answer_tokens=wanted, count=state.server.count_tokens)

    async def _cancelled(self, writer: TokenStreamWriter, tally: Tally) -> Outcome:
        """Return the outcome of a stopped answer: it keeps, and pays, what was written."""
        return Outcome(
            status=Message.Status.CANCELLED,
            finish_reason="cancelled",
            content=writer.text,
            tokens_in=await self._count(tally) if tally.decoded_tokens else 0,
            tokens_out=tally.decoded_tokens,
            **_circumstances(tally),
        )

    async def _count(self, tally: Tally) -> int:
        """Return the prompt's tokens where the server could not report them, because its answer was cut short."""
        if tally.replica is None or not tally.prompt:
            return 0
        try:
            async with asyncio.timeout(_COUNT_SECONDS):
                return await tally.replica.server.count_tokens(tally.prompt)
        except (ModelServerError, TimeoutError):
            return 0

    async def _decoded_before(self, model: Any, prompt: Sequence[ChatMessage], text: str) -> int:
        """Return about how many tokens an earlier attempt decoded for its text."""
        for state in self.fleet.of(model.replicas):
            try:
                async with asyncio.timeout(_COUNT_SECONDS):
                    whole = await state.server.count_tokens([*prompt, ChatMessage("assistant", text)])
                    return max(0, whole - await state.server.count_tokens(prompt))
            except (ModelServerError, TimeoutError):
                continue
        return 0

    async def _finish(self, attempt: Attempt, outcome: Outcome) -> bool:
        """Store the end, however long the database is away; the answer is safe in this process meanwhile."""
        while True:
            try:
                return await in_database(attempts.finish, attempt, outcome)
            except DATABASE_UNREACHABLE as error:
                log.warning("finish_failed", error=type(error).__name__)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _tell_the_end(self, attempt: Attempt, outcome: Outcome, writer: TokenStreamWriter) -> None:
        log.info("reply_ended", finish_reason=outcome.finish_reason, tokens_out=outcome.tokens_out)
        writer.write_end(failure_event(outcome), done_event(attempt.generation_id, outcome))
        await self.publisher.drain(writer, _DRAIN_SECONDS)
        await broadcast(
            attempt.user_id,
            "conversation_changed",
            conversation_id=attempt.conversation_id,
            generation_id=attempt.generation_id,
            status=outcome.status,
        )

    async def _hand_over(self, reply: LiveReply) -> None:
        await self.publisher.drain(reply.writer, _DRAIN_SECONDS)
        job = await in_database(attempts.hand_over, reply.attempt, reply.writer.text)
        if job is not None:
            await in_database(generations.enqueue, [job])


_RESUMED = {
    "code": "resumed_on_another_replica",
    "message": "The model server was interrupted; the answer goes on.",
}


def failure_event(outcome: Outcome) -> tuple[str, dict[str, Any]] | None:
    """Return type and data of the event that tells why an answer failed; `None` for one that did not."""
    if not outcome.error_code:
        return None
    data = {"code": outcome.error_code, "message": outcome.error_message}
    return "error", {**data, "retryable": outcome.error_code in RETRYABLE_CODES}


RETRYABLE_CODES = frozenset({"no_capacity", "internal_error"})


def done_event(generation_id: UUID, outcome: Outcome) -> dict[str, Any]:
    """Return the data of the last event of a stream."""
    used = {"in": outcome.tokens_in, "cached": outcome.tokens_cached, "out": outcome.tokens_out}
    return {"message_id": str(generation_id), "finish_reason": outcome.finish_reason, "usage": used}


def _failed(writer: TokenStreamWriter, tally: Tally, code: str, message: str) -> Outcome:
    return Outcome(
        status=Message.Status.FAILED,
        finish_reason="error",
        content=writer.text,
        error_code=code,
        error_message=message,
        **_circumstances(tally),
    )


def _circumstances(tally: Tally) -> dict[str, Any]:
    return {
        "first_token_at": tally.first_token_at,
        "replica": tally.replica.replica.url if tally.replica else "",
        "model_version": tally.model_version,
    }


def _sampling(options: dict[str, Any], prompt: Prompt) -> SamplingOptions:
    return SamplingOptions(
        max_new_tokens=prompt.max_new_tokens,
        temperature=options.get("temperature"),
        top_p=options.get("top_p"),
        seed=options.get("seed"),
        stop=tuple(options.get("stop") or ()),
    )
