"""One streamed answer: from a server's chunks to the events that callers see, up to its proper end."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import closing, suppress
from dataclasses import dataclass

from inference.events import Finished, Piece, Reasoning, StopReason, StreamEvent
from inference.messages import ChatRequest
from inference.tgi.chunks import Chunk, Usage
from inference.tgi.errors import ModelServerError
from inference.tgi.event_stream import EventStream
from inference.tgi.text import RepeatedWhitespace, StopStrings, TextRepair
from inference.tgi.transport import Transport
from inference.watch import Watch


@dataclass(frozen=True, slots=True)
class Dialect:
    """In what the chat streams of two kinds of servers differ."""

    has_a_token_per_delta: bool
    writes_stop_strings: bool
    trims_a_partial_answer: bool


async def stream_answer(
    transport: Transport,
    path: str,
    body: dict[str, object],
    *,
    request: ChatRequest,
    dialect: Dialect,
    watch: Watch | None = None,
) -> AsyncGenerator[StreamEvent]:
    """Posts `body` and yields the answer's events; the last one is `Finished`.

    Raises `ModelServerError` if the answer has no proper end. Closing the generator closes the connection.
    """
    deadline = asyncio.get_running_loop().time() + transport.timeouts.first_token_seconds
    answer, watch = _Answer(request, dialect), watch or Watch()
    async with transport.open_stream(
        path, body, request_id=request.request_id, deadline=deadline, watch=watch
    ) as response:
        with closing(EventStream(response, transport.timeouts, deadline=deadline)) as stream:
            watch.stop_with(stream.give_up)
            while answer.reason is None:
                chunk = await stream.next_chunk()
                if answer.has_token(chunk):
                    watch.note_progress()
                    stream.note_progress()
                for event in answer.read(chunk):
                    yield event
            if not answer.was_cut:
                await _read_usage(stream, answer)
    yield answer.finished()


async def _read_usage(stream: EventStream, answer: "_Answer") -> None:
    """Reads what follows the finish reason. Nothing that goes wrong there takes away an answer that is complete."""
    stream.expect_usage()
    with suppress(ModelServerError):
        while not answer.is_done:
            answer.note_usage(await stream.next_chunk())
        await stream.finish_body()


class _Answer:
    """What is known of an answer so far. `was_cut` says that we end it, not the server."""

    def __init__(self, request: ChatRequest, dialect: Dialect) -> None:
        last = request.messages[-1]
        partial = last.content if last.role == "assistant" and dialect.trims_a_partial_answer else ""
        self._max_new_tokens = request.options.max_new_tokens
        self._dialect = dialect
        self._text_repair = TextRepair()
        self._reasoning_repair = TextRepair()
        self._repeated_whitespace = RepeatedWhitespace(partial)
        self._stop_strings = StopStrings(request.options.stop if dialect.writes_stop_strings else ())
        self._usage: Usage | None = None
        self._deltas = 0
        self._tokens = 0
        self._tokens_told = 0
        self.reason: StopReason | None = None
        self.was_cut = False
        self.is_done = False

    def has_token(self, chunk: Chunk | None) -> bool:
        """Whether the server has computed something for this chunk. TGI sends no text for a token that is half a
        character; elsewhere a chunk without text only opens or closes the answer."""
        if chunk is None:
            return False
        return chunk.is_delta if self._dialect.has_a_token_per_delta else bool(chunk.text or chunk.reasoning)

    def read(self, chunk: Chunk | None) -> list[StreamEvent]:
        """The events that `chunk` adds; `None` is the end marker. Sets `reason` when nothing more is to come."""
        self.note_usage(chunk)
        if chunk is None:
            self.reason = "stop"
            return self._rest()
        self._count(chunk)
        if self._is_runaway(chunk):
            self.reason, self.was_cut = "length", True
            return self._rest()
        events = self._texts_of(chunk)
        self.reason = "stop" if self._stop_strings.was_met else chunk.reason or self._reached_limit()
        if self.reason is None:
            return events
        self.was_cut = chunk.reason is None
        return events + self._rest()

    def note_usage(self, chunk: Chunk | None) -> None:
        if chunk is None:
            self.is_done = True
        elif chunk.usage is not None:
            self._usage = chunk.usage

    def finished(self) -> Finished:
        assert self.reason is not None
        usage = self._usage or Usage(None, None, None)
        counted = self._tokens if self._dialect.has_a_token_per_delta else None
        # Users pay for it: more than was asked for is not believed.
        is_believed = usage.tokens_out is not None and usage.tokens_out <= self._max_new_tokens
        return Finished(self.reason, usage.tokens_in, usage.tokens_cached, usage.tokens_out if is_believed else counted)

    def _count(self, chunk: Chunk) -> None:
        if not self.has_token(chunk):
            return
        self._deltas += 1
        if self._dialect.has_a_token_per_delta:
            self._tokens += 1
        elif chunk.usage is not None and chunk.usage.tokens_out is not None:
            self._tokens = chunk.usage.tokens_out

    def _reached_limit(self) -> StopReason | None:
        """TGI rounds a limit above 1024 tokens up to a multiple of 1024, so we keep to it ourselves."""
        return "length" if self._dialect.has_a_token_per_delta and self._tokens >= self._max_new_tokens else None

    def _is_runaway(self, chunk: Chunk) -> bool:
        """Some servers forget a limit. Where deltas are not tokens, they still cannot be more than the tokens."""
        return chunk.reason is None and max(self._deltas, self._tokens) > self._max_new_tokens

    def _texts_of(self, chunk: Chunk) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if chunk.reasoning and (thought := self._reasoning_repair.feed(chunk.reasoning)):
            events.append(Reasoning(thought, self._take_tokens()))
        if chunk.text and (
            text := self._stop_strings.feed(self._repeated_whitespace.feed(self._text_repair.feed(chunk.text)))
        ):
            events.append(Piece(text, self._take_tokens()))
        return events

    def _rest(self) -> list[StreamEvent]:
        """What was held back in case more came."""
        thought = self._reasoning_repair.end()
        held = self._repeated_whitespace.feed(self._text_repair.end()) + self._repeated_whitespace.end()
        text = self._stop_strings.feed(held) + self._stop_strings.end()
        events: list[StreamEvent] = [Reasoning(thought, self._take_tokens())] if thought else []
        return [*events, Piece(text, self._take_tokens())] if text else events

    def _take_tokens(self) -> int:
        """Tokens not yet told of, those without text of their own included."""
        told, self._tokens_told = self._tokens_told, self._tokens
        return self._tokens - told
