"""A fork: a new conversation with copies of a path, which goes its own way; the original stays as it is."""

from dataclasses import replace

import orjson
import pytest

from accounts.models import UsageRecord
from conversations.context.record import Record, UsedSummary
from conversations.exceptions import InvalidRequest
from conversations.models import Conversation, Generation, Message, Summary
from conversations.services import forking
from foundation.ids import new_id
from tests.accounts.factories import make_user


def say(text):
    return f'@twin {{"text": "{text}"}}\nGo'


async def messages(client, conversation_id, branch="active"):
    status, page = await client.call("GET", f"/v1/conversations/{conversation_id}/messages?branch={branch}&limit=100")
    assert status == 200
    return page["data"]


async def fork(client, conversation_id, **body):
    return await client.call("POST", f"/v1/conversations/{conversation_id}/fork", body)


COPIED = ("role", "content", "status", "finish_reason", "model", "usage", "created_at")


async def test_a_fork_has_copies_of_the_shown_branch_under_ids_of_their_own(alice):
    conversation_id = await alice.conversation(title="Plan", instructions="Be brief.", model="small")
    first = await alice.send(conversation_id, say("A"))
    await alice.send(conversation_id, say("not shown"))
    await alice.send(conversation_id, say("B"), parent_id=first[0].data["message_id"])
    original = await messages(alice, conversation_id)
    status, made = await fork(alice, conversation_id)
    assert status == 201
    assert (made["title"], made["instructions"], made["model"]) == ("Plan (copy)", "Be brief.", "small")
    copies = await messages(alice, made["conversation_id"], "all")
    assert [[each[name] for name in COPIED] for each in copies] == [[each[n] for n in COPIED] for each in original]
    ids = [each["message_id"] for each in copies]
    assert ids == sorted(ids)
    assert not {*ids} & {each["message_id"] for each in original}
    assert [each["parent_id"] for each in copies] == [None, *ids[:-1]]
    assert made["active_message_id"] == ids[-1]
    assert made["context"]["used"] > 0
    assert await messages(alice, conversation_id) == original


async def test_a_fork_ends_at_the_message_that_is_named(alice):
    conversation_id = await alice.conversation()
    first = (await alice.send(conversation_id, say("A")))[0].data
    await alice.send(conversation_id, say("B"))
    for message_id, expected in ((first["message_id"], [say("A"), "A"]), (first["user_message_id"], [say("A")])):
        status, made = await fork(alice, conversation_id, message_id=message_id)
        assert status == 201
        assert [each["content"] for each in await messages(alice, made["conversation_id"])] == expected


async def test_what_is_said_in_a_fork_follows_its_end_and_stays_in_it(alice):
    conversation_id = await alice.conversation()
    first = (await alice.send(conversation_id, say("A")))[0].data
    for message_id in (first["message_id"], first["user_message_id"]):
        _, made = await fork(alice, conversation_id, message_id=message_id)
        copies = await messages(alice, made["conversation_id"])
        await alice.send(made["conversation_id"], say("C"))
        shown = await messages(alice, made["conversation_id"])
        assert [each["content"] for each in shown][:-1] == [*(each["content"] for each in copies), say("C")]
        assert shown[-1]["status"] == "complete"
    assert len(await messages(alice, conversation_id, "all")) == 2


async def test_each_copied_answer_has_its_generation_and_nothing_is_charged_twice(alice):
    conversation_id = await alice.conversation()
    start = (await alice.send(conversation_id, say("A")))[0].data
    used = await UsageRecord.objects.acount()
    _, made = await fork(alice, conversation_id)
    status, generation = await alice.call("GET", f"/v1/generations/{made['active_message_id']}")
    assert (status, generation["status"], generation["message"]["content"]) == (200, "complete", "A")
    assert [event.type for event in await alice.follow(made["active_message_id"])] == ["start", "token", "done"]
    assert await UsageRecord.objects.acount() == used
    assert (await alice.call("GET", f"/v1/generations/{start['generation_id']}"))[0] == 200


async def test_a_branch_that_is_being_written_is_not_copied(alice):
    conversation_id = await alice.conversation()
    first = (await alice.send(conversation_id, say("A")))[0].data
    async with alice.sending(conversation_id, '@twin {"tokens": 3000, "token_ms": 5}\nGo') as stream:
        events = await stream.until("token")
        status, answer = await fork(alice, conversation_id)
        assert (status, answer["error"]["code"]) == (409, "generation_in_progress")
        assert (await fork(alice, conversation_id, message_id=first["message_id"]))[0] == 201
        await alice.call("POST", f"/v1/generations/{events[0].data['generation_id']}/cancel")


async def test_an_empty_conversation_is_copied_too(alice):
    status, made = await fork(alice, await alice.conversation(instructions="Be brief."))
    assert (status, made["title"], made["active_message_id"]) == (201, "", None)


async def test_a_faulty_fork_is_refused(alice):
    conversation_id, other = await alice.conversation(), await alice.conversation()
    foreign = (await alice.send(other, say("A")))[0].data["message_id"]
    status, answer = await fork(alice, conversation_id, message_id=foreign)
    assert (status, answer["error"]["param"]) == (404, "message_id")
    assert (await fork(alice, conversation_id, title="x"))[0] == 422
    assert (await fork(alice, conversation_id, message_id="x"))[0] == 422


async def test_a_stranger_copies_nothing(alice, charlie):
    conversation_id = await alice.conversation()
    start = (await alice.send(conversation_id, say("Secret")))[0].data
    assert (await fork(charlie, conversation_id))[0] == 404
    own = await charlie.conversation()
    assert (await fork(charlie, own, message_id=start["message_id"]))[0] == 404
    assert await Conversation.objects.acount() == 2


def long_conversation(user, length):
    conversation = Conversation.objects.create(user=user, title="Long")
    rows, parent = [], None
    for number in range(length):
        role = "assistant" if number % 2 else "user"
        parent = Message(conversation=conversation, parent=parent, role=role, content=f"{number} " + "word " * 40)
        rows.append(parent)
    Message.objects.bulk_create(rows)
    Generation.objects.bulk_create(
        Generation(message=row, conversation=conversation, user=user, status="complete", deadline=row.created_at)
        for row in rows
        if row.role == "assistant"
    )
    Conversation.objects.filter(pk=conversation.pk).update(active_message=parent)
    return conversation, rows


@pytest.mark.django_db
def test_records_and_summaries_speak_of_the_copies():
    user = make_user()
    conversation, rows = long_conversation(user, 12)
    beyond = Message.objects.create(conversation=conversation, parent=rows[-1], role="user", content="Beyond")
    summary, unheld = (
        Summary.objects.create(conversation=conversation, covers_up_to=covered, made_for=beyond, epoch=1, text="Notes")
        for covered in (rows[5], beyond)
    )
    record = Record(
        tokenizer="t", is_exact=True, window_tokens=100, budget_tokens=75, total_tokens=60,
        head_up_to=rows[1].id, dropped_up_to=rows[5].id, tail_from=rows[6].id, messages_dropped=4,
        summary=UsedSummary(summary.id, 1, 3), trimmed_passages=((rows[8].id, 2),),
    )  # fmt: skip
    stored = orjson.loads(orjson.dumps(record.as_json()))
    Generation.objects.filter(pk=rows[11].id).update(context=stored)
    Generation.objects.filter(pk=rows[9].id).update(context={"tokenizer": "damaged"})
    copy = forking.fork(user=user, conversation_id=conversation.id, message_id=rows[11].id)
    copies = list(copy.messages.order_by("id"))
    copied = copy.summaries.get()
    assert (copied.text, copied.covers_up_to, copied.made_for) == ("Notes", copies[5], copies[5])
    assert Record.read(Generation.objects.get(pk=copies[11].id).context) == replace(
        record,
        head_up_to=copies[1].id,
        dropped_up_to=copies[5].id,
        tail_from=copies[6].id,
        summary=UsedSummary(copied.id, 1, 3),
        trimmed_passages=((copies[8].id, 2),),
    )
    assert Generation.objects.get(pk=copies[9].id).context is None
    assert conversation.summaries.count() == 2
    assert unheld.id not in copy.summaries.values_list("id", flat=True)


@pytest.mark.django_db
def test_a_temporary_conversations_copy_is_temporary_and_a_full_title_stays_within_its_length():
    user = make_user()
    original = Conversation.objects.create(user=user, temporary=True, pinned=True, title="x" * 200)
    copy = forking.fork(user=user, conversation_id=original.id)
    assert (copy.temporary, copy.pinned, len(copy.title)) == (True, False, 200)
    assert copy.title.endswith("… (copy)")
    assert copy.is_title_chosen


@pytest.mark.django_db
def test_a_longer_branch_than_can_be_written_at_once_is_refused():
    user = make_user()
    conversation, _ = long_conversation(user, forking.MOST_MESSAGES + 1)
    with pytest.raises(InvalidRequest, match="5,001 messages; 5,000 can be copied"):
        forking.fork(user=user, conversation_id=conversation.id)
    assert Conversation.objects.count() == 1


@pytest.mark.django_db
def test_a_fork_takes_as_many_statements_whatever_the_length(django_assert_max_num_queries):
    user = make_user()
    for length in (2, 600):
        conversation, _ = long_conversation(user, length)
        with django_assert_max_num_queries(16):
            copy = forking.fork(user=user, conversation_id=conversation.id)
        assert copy.messages.count() == length


@pytest.mark.django_db
def test_an_unknown_message_is_not_found():
    user = make_user()
    conversation, _ = long_conversation(user, 2)
    with pytest.raises(forking.NotFound):
        forking.fork(user=user, conversation_id=conversation.id, message_id=new_id())
