"""A conversation of Alice's whose last answer left something out, with the record of what its model saw."""

import orjson
import pytest

from conversations.context.record import Record, UsedMemory, UsedSummary
from conversations.models import Conversation, Generation, Memory, Message, Preference, Summary
from tests.accounts.factories import make_user, signed_in_as


@pytest.fixture
def alice():
    return make_user("alice@example.com")


@pytest.fixture
def browser(alice):
    return signed_in_as(alice)


def make_exchanges(user, count, **fields):
    """Make a conversation of so many questions and answers, shown to its end."""
    conversation = Conversation.objects.create(user=user, **fields)
    rows, parent = [], None
    for number in range(2 * count):
        role = "assistant" if number % 2 else "user"
        content = f"{'answer' if number % 2 else 'question'} {number}"
        parent = conversation.messages.create(parent=parent, role=role, content=content, token_counts={"tok": 10})
        if role == "assistant":
            Generation.objects.create(
                message=parent, conversation=conversation, user=user, status="complete", deadline=parent.created_at
            )
        rows.append(parent)
    Conversation.objects.filter(pk=conversation.pk).update(active_message=parent)
    conversation.refresh_from_db()
    return conversation, rows


def keep_record(answer, record):
    Generation.objects.filter(pk=answer.pk).update(context=orjson.loads(orjson.dumps(record.as_json())))


@pytest.fixture
def trimmed(alice):
    """The last of eight exchanges: the first was kept, the next four were left out and summarised."""
    conversation, rows = make_exchanges(alice, 8, title="Talk", instructions="Be brief.", model="small")
    Message.objects.filter(pk=rows[12].pk).update(content="")
    Preference.objects.create(user=alice, instructions="Call me Al.")
    memory, gone = (Memory.objects.create(user=alice, content=text, origin="written") for text in ("Likes tea.", "x"))
    summary = Summary.objects.create(
        conversation=conversation, covers_up_to=rows[9], made_for=rows[9], epoch=3, text="They planned a party."
    )
    record = Record(
        tokenizer="tok",
        is_exact=True,
        window_tokens=200,
        budget_tokens=150,
        total_tokens=120,
        site_instructions_tokens=7,
        user_instructions_tokens=4,
        instructions_tokens=3,
        memories=(UsedMemory(memory.id, 5), UsedMemory(gone.id, 2)),
        summary=UsedSummary(summary.id, 3, 9),
        messages_kept=6,
        messages_kept_tokens=60,
        messages_dropped=8,
        head_up_to=rows[1].id,
        dropped_up_to=rows[9].id,
        tail_from=rows[10].id,
        passages_kept=2,
        passages_dropped=1,
    )
    gone.delete()
    keep_record(rows[15], record)
    return rows
