"""What a reader needs to know of a generation from the database."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from conversations import queries
from conversations.exchanges import question_id_of
from conversations.models import Generation, Message
from conversations.services.admission import NOTICES
from conversations.services.outcomes import Outcome, done_event, failure_event
from inference.positions import DONE_ORDINAL, FAILURE_ORDINAL, FIRST_WORKER_ORDINAL, Position, text_from
from inference.token_stream import StreamedEvent, token_event

MOST_CHARACTERS_PER_EVENT = 16_384


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One reading of a generation and its message."""

    generation_id: UUID
    conversation_id: UUID
    user_message_id: UUID
    status: str
    model: str
    content: str
    deadline: datetime
    is_background: bool
    outcome: Outcome
    notices: tuple[str, ...] = ()

    @property
    def is_ended(self) -> bool:
        return self.status not in Message.UNDER_WAY

    @property
    def end(self) -> Position:
        """Where `done` stands, once it has ended."""
        return Position(Position.of_text(self.content).offset, DONE_ORDINAL)

    def events_after(self, position: Position) -> Iterator[StreamedEvent]:
        """Yield, from what is stored, the text that a reader at this position has not seen, and the end if it came.

        A long text comes in parts, made as they are taken, so that a slow reader of it costs little. Once there is
        text, or the end, the notices come first: who follows a quick answer may be too late for the worker's own.
        """
        if (self.content or self.is_ended) and position < Position(0, FIRST_WORKER_ORDINAL):
            yield from self._notice_events()
        reached = Position.of_text(self.content)
        if reached.offset > position.offset:
            missing = text_from(self.content, position.offset)
            begin = Position(reached.offset - len(missing.encode()), 0)
            for start in range(0, len(missing), MOST_CHARACTERS_PER_EVENT):
                event = token_event(begin, missing[start : start + MOST_CHARACTERS_PER_EVENT])
                begin = event.position
                yield event
        if self.is_ended:
            yield from self._end_events(reached.offset)

    def _notice_events(self) -> Iterator[StreamedEvent]:
        known = [code for code in self.notices if code in NOTICES]
        for place, code in enumerate(known):
            position = Position(0, FIRST_WORKER_ORDINAL + place)
            yield _event(position, "notice", {"code": code, "message": NOTICES[code]})

    def _end_events(self, offset: int) -> list[StreamedEvent]:
        events = []
        if failure := failure_event(self.outcome):
            kind, data = failure
            events.append(_event(Position(offset, FAILURE_ORDINAL), kind, data))
        done = done_event(self.generation_id, self.outcome)
        return [*events, _event(self.end, "done", done)]


def _event(position: Position, kind: str, data: dict[str, Any]) -> StreamedEvent:
    return StreamedEvent(position, kind, orjson.dumps({"type": kind, **data}))


def snapshot_of(generation: Generation) -> Snapshot:
    """Return the snapshot of a generation whose message is loaded."""
    message = generation.message
    return Snapshot(
        generation_id=generation.pk,
        conversation_id=generation.conversation_id,
        user_message_id=question_id_of(message),
        status=generation.status,
        model=generation.model,
        content=message.content,
        deadline=generation.deadline,
        is_background=generation.is_background,
        outcome=Outcome(
            status=Message.Status(generation.status),
            finish_reason=generation.finish_reason,
            content=message.content,
            tokens_in=message.tokens_in or 0,
            tokens_cached=message.tokens_cached or 0,
            tokens_out=message.tokens_out or 0,
            error_code=generation.error_code,
            error_message=generation.error_message,
        ),
        notices=tuple(generation.notices),
    )


def snapshot_for(user_id: UUID, generation_id: UUID) -> Snapshot:
    """Return a snapshot of the user's generation; raise `NotFound` for anybody else's."""
    return snapshot_of(queries.generation_of(user_id, generation_id))


def snapshots(generation_ids: list[UUID]) -> dict[UUID, Snapshot]:
    """Return a snapshot of each generation that (still) exists. For ids whose owner was checked before."""
    found = Generation.objects.with_what_they_follow().filter(pk__in=generation_ids)
    return {generation.pk: snapshot_of(generation) for generation in found}


def statuses(generation_ids: list[UUID]) -> dict[UUID, str]:
    """Return the status of each generation that (still) exists."""
    return dict(Generation.objects.filter(pk__in=generation_ids).values_list("pk", "status"))
