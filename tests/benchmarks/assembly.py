"""`python -m tests.benchmarks.assembly REPETITIONS`: measures how long prompts take to be made, prints what it found.

A program of its own, because Django must know its database before the models are imported.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
django.setup()

import orjson  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.backends.signals import connection_created  # noqa: E402
from django.utils import timezone  # noqa: E402

from accounts.models import User  # noqa: E402
from conversations.context.fitting import Fitted, fit  # noqa: E402
from conversations.context.material import Material, Said  # noqa: E402
from conversations.context.record import Record  # noqa: E402
from conversations.models import Conversation, Generation, Message  # noqa: E402
from conversations.services import claims  # noqa: E402
from conversations.services.attempts import Attempt  # noqa: E402
from conversations.services.context_cache import ContextCache, Place  # noqa: E402
from conversations.services.reading import history_after, most_history_bytes, read_material  # noqa: E402
from foundation.database import in_database  # noqa: E402
from foundation.ids import new_id  # noqa: E402
from foundation.redis import connect_async  # noqa: E402
from inference.messages import ChatMessage  # noqa: E402
from inference.token_counting import TemplateTokens  # noqa: E402

LENGTHS = (10, 5000)
WINDOW = 8192
ANSWER = 1024
TOKENS = {"user": 60, "assistant": 200}
_BYTES_PER_TOKEN = 4
_KEEP_SECONDS = 600
_TURNS_BEFORE = 2


@dataclass(frozen=True)
class Case:
    """How a prompt is made: with the record of the one before or without, with the cache or without."""

    messages: int
    has_record: bool
    has_cache: bool


@dataclass
class Measured:
    """What one case took."""

    case: Case
    times_ms: list[float] = field(default_factory=list)
    statements: list[int] = field(default_factory=list)
    kept_messages: int = 0
    prompt_tokens: int = 0


class Counter:
    """Has a token for four bytes, at once: what a model server takes to count is not measured."""

    name = "benchmark"
    is_exact = True

    async def count_texts(self, texts: Sequence[str]) -> list[int]:
        return [len(text) // _BYTES_PER_TOKEN for text in texts]

    async def count_prompt(self, messages: Sequence[ChatMessage]) -> int:
        return sum(len(message.content) // _BYTES_PER_TOKEN + 4 for message in messages)

    async def template(self) -> TemplateTokens:
        return TemplateTokens(base=8, per_message=6)


class Statements:
    """Counts what all threads ask the database."""

    def __init__(self) -> None:
        self.count = 0
        connection_created.connect(self._watch, weak=False)

    def _watch(self, connection: Any, **_kwargs: Any) -> None:
        connection.execute_wrappers.append(self._counted)

    def _counted(self, execute: Any, *arguments: Any) -> Any:
        self.count += 1
        return execute(*arguments)


def _text(role: str, number: int) -> str:
    return (f"{role} {number} says something of some use. " * 30)[: TOKENS[role] * _BYTES_PER_TOKEN]


def _make_conversation(messages: int) -> tuple[Conversation, UUID]:
    """Make a conversation of so many messages in turn, each counted; return it and the last one's id."""
    conversation = Conversation.objects.create(user=User.objects.order_by("pk")[0])
    rows: list[Message] = []
    for number in range(messages):
        role = "assistant" if number % 2 else "user"
        rows.append(
            Message(
                id=new_id(),
                conversation=conversation,
                parent_id=rows[-1].pk if rows else None,
                role=role,
                content=_text(role, number),
                token_counts={Counter.name: TOKENS[role]},
            )
        )
    Message.objects.bulk_create(rows, batch_size=1000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE conversations_message")
    return conversation, rows[-1].pk


def _ask(conversation: Conversation, tip: UUID, number: int) -> Generation:
    """Add a question below an answer, and the empty answer that is to be written."""
    question = Message.objects.create(
        conversation=conversation, parent_id=tip, role="user", content=_text("user", number)
    )
    answer = Message.objects.create(conversation=conversation, parent=question, role="assistant", status="queued")
    return Generation.objects.create(
        message=answer,
        conversation=conversation,
        user_id=conversation.user_id,
        priority_class="free",
        model="small",
        options={"max_tokens": ANSWER},
        deadline=timezone.now() + timedelta(hours=1),
        # Held by nobody whom the product's own workers would ask: they look for what is queued.
        enqueued_at=timezone.now() + timedelta(hours=1),
    )


def _end(generation_id: UUID, record: Record | None) -> None:
    stored = orjson.loads(orjson.dumps(record.as_json())) if record else None
    Generation.objects.filter(pk=generation_id).update(status="complete", context=stored)
    counts = {Counter.name: TOKENS["assistant"]}
    Message.objects.filter(pk=generation_id).update(
        status="complete", content=_text("assistant", 0), token_counts=counts
    )


async def _measure(case: Case, repetitions: int, statements: Statements) -> Measured:
    """Ask again and again below the same answer, whose record and entry in the cache two turns have left."""
    measured = Measured(case)
    conversation, tip = await in_database(_make_conversation, case.messages - 2 * _TURNS_BEFORE)
    async with connect_async() as client:
        cache = ContextCache(client, _KEEP_SECONDS if case.has_cache else 0)
        for number in range(_TURNS_BEFORE):
            generation = await in_database(_ask, conversation, tip, number)
            await _after(await _turn(generation.pk, cache), cache, keeps_record=case.has_record)
            tip = generation.pk
        for number in range(repetitions):
            generation = await in_database(_ask, conversation, tip, number)
            before, began = statements.count, time.perf_counter()
            turn = await _turn(generation.pk, cache)
            measured.times_ms.append((time.perf_counter() - began) * 1e3)
            measured.statements.append(statements.count - before)
            measured.kept_messages = turn.fitted.record.messages_kept
            measured.prompt_tokens = turn.fitted.record.total_tokens
    await in_database(conversation.delete)
    return measured


@dataclass(frozen=True)
class Turn:
    """One prompt, and what it was made of."""

    attempt: Attempt
    material: Material
    fitted: Fitted


async def _turn(generation_id: UUID, cache: ContextCache) -> Turn:
    """Claim, read, choose and write one prompt: what is measured."""
    attempt = await in_database(claims.claim, generation_id)
    assert attempt is not None
    material = await read_material(
        attempt.opening,
        cache,
        user_id=attempt.user_id,
        conversation_id=attempt.conversation_id,
        most_bytes=most_history_bytes([WINDOW]),
    )
    fitted = await fit(material, counter=Counter(), window_tokens=WINDOW, answer_tokens=ANSWER)
    return Turn(attempt, material, fitted)


async def _after(turn: Turn, cache: ContextCache, *, keeps_record: bool) -> None:
    """End the answer, and keep what the next turn begins from."""
    attempt, generation_id, record = turn.attempt, turn.attempt.generation_id, turn.fitted.record
    await in_database(_end, generation_id, record if keeps_record else None)
    answer = Said(generation_id, "assistant", _text("assistant", 0), {Counter.name: TOKENS["assistant"]})
    place = Place(attempt.user_id, attempt.conversation_id, generation_id, attempt.opening.context_version)
    await cache.keep(place, history_after(turn.material, record, answer))


async def _measure_all(repetitions: int) -> list[Measured]:
    statements = Statements()
    cases = [
        Case(messages, has_record, has_cache)
        for messages in LENGTHS
        for has_record, has_cache in ((True, True), (True, False), (False, False))
    ]
    return [await _measure(case, repetitions, statements) for case in cases]


if __name__ == "__main__":
    json.dump([asdict(each) for each in asyncio.run(_measure_all(int(sys.argv[1])))], sys.stdout)
