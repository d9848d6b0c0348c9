"""What this site exports comes back as it was, into whichever account, and once."""

import json
import threading
from datetime import UTC, datetime

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.models import Conversation, Import, ImportedConversation, Message, Summary
from conversations.services import conversations
from conversations.services.exports import conversation_parts
from conversations.services.imports import reading
from conversations.services.transfers import files, lease
from foundation.ids import new_id
from tests.accounts.factories import make_user
from tests.conversations.transfers.chatgpt_export import chain
from tests.conversations.transfers.conftest import bring


def exported(user) -> dict:
    """What `conversations.json` says of a user."""
    return json.loads("".join(conversation_parts.conversations(user)))


def without_ids(document: dict) -> list:
    """The conversations, their ids replaced by their places in the order in which they come."""
    names: dict[str, str] = {}
    text = json.dumps(document["conversations"])
    for conversation in document["conversations"]:
        names[conversation["conversation_id"]] = f"conversation {len(names)}"
        for message in conversation["messages"]:
            names[message["message_id"]] = f"message {len(names)}"
    for own_id, name in names.items():
        text = text.replace(own_id, name)
    return json.loads(text)


def say(conversation, parent, role, content="Hello", **fields) -> Message:
    return Message.objects.create(conversation=conversation, parent=parent, role=role, content=content, **fields)


def make_conversation(user, **fields) -> Conversation:
    """One with two branches, of which the older is shown, and a summary."""
    conversation = Conversation.objects.create(user=user, title="Tea", instructions="Be brief.", pinned=True, **fields)
    question = say(conversation, None, "user", "Which tea?")
    answer = say(conversation, question, "assistant", "Green.", tokens_in=5, tokens_cached=1, tokens_out=2)
    say(conversation, question, "assistant", "Black.", status="cancelled", finish_reason="cancelled", model="gone")
    Summary.objects.create(
        conversation=conversation, covers_up_to=answer, made_for=answer, epoch=1, text="On tea.", model="small"
    )
    conversation.active_message = answer
    conversation.save()
    return conversation


def test_an_export_comes_back_with_branches_summaries_and_usage(alice, bob):
    make_conversation(alice)
    document = exported(alice)
    assert bring(bob, document).report["imported"] == 1
    assert without_ids(exported(bob)) == without_ids(document)
    ids = {conversation["conversation_id"] for conversation in exported(bob)["conversations"]}
    assert ids.isdisjoint(conversation["conversation_id"] for conversation in document["conversations"])


_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
_TIMES = st.datetimes(datetime(2001, 1, 1), datetime(2026, 1, 1), timezones=st.just(UTC))
_ANSWERS = st.sampled_from(
    [
        ("complete", "stop"),
        ("cancelled", "cancelled"),
        ("complete", "length"),
        ("failed", "error"),
        ("blocked", "blocked"),
    ]
)


@st.composite
def _trees(draw):
    """Messages as (place of the parent or None, role, content, end, time)."""
    tree = []
    for place in range(draw(st.integers(0, 8))):
        parent = draw(st.none() | st.integers(0, place - 1)) if place else None
        is_answer = parent is not None and tree[parent][1] == "user"
        end = draw(_ANSWERS) if is_answer else ("complete", "")
        tree.append((parent, "assistant" if is_answer else "user", draw(_TEXTS), end, draw(_TIMES)))
    return tree


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=_trees(), title=_TEXTS, flags=st.tuples(st.booleans(), st.booleans(), st.booleans()), data=st.data())
def test_whatever_is_exported_comes_back_equal_but_for_ids(db, tree, title, flags, data):
    original, copy = make_user(), make_user()
    pinned, archived, chosen = flags
    conversation = Conversation.objects.create(
        user=original,
        title=title,
        pinned=pinned,
        archived=archived,
        is_title_chosen=chosen,
        created_at=data.draw(_TIMES),
    )
    made = []
    for parent, role, content, (status, reason), at in tree:
        above = made[parent] if parent is not None else None
        message = say(conversation, above, role, content, status=status, finish_reason=reason, created_at=at)
        made.append(message)
    conversation.active_message = data.draw(st.none() | st.sampled_from(made)) if made else None
    conversation.save()
    document = exported(original)
    assert bring(copy, document).report["imported"] == 1
    assert without_ids(exported(copy)) == without_ids(document)


def test_the_same_file_twice_imports_nothing_new(alice, bob):
    make_conversation(alice)
    document = exported(alice)
    bring(bob, document)
    assert bring(bob, document).outcomes == [("skipped", "It is there already.")]
    assert Conversation.objects.filter(user=bob).count() == 1


def test_ones_own_export_imports_nothing_while_the_conversation_is_there_and_brings_back_a_deleted_one(alice):
    conversation = make_conversation(alice)
    document = exported(alice)
    assert bring(alice, document).outcomes == [("skipped", "It is there already.")]
    conversations.delete(user=alice, conversation_id=conversation.pk)
    assert bring(alice, document).report["imported"] == 1
    assert Conversation.objects.get(user=alice).title == "Tea"


def test_ids_of_somebody_elses_mean_nothing(alice, bob):
    theirs = make_conversation(alice)
    document = exported(alice)
    document["conversations"][0]["conversation_id"] = str(new_id())
    foreign = str(theirs.messages.first().pk)
    document["conversations"][0]["messages"] = [
        {"message_id": str(new_id()), "parent_id": foreign, "role": "user", "content": "Hi", "status": "complete"}
        | {"finish_reason": "", "model": "", "usage": None}
    ]
    document["conversations"][0]["active_message_id"] = foreign
    assert bring(bob, document).report["imported"] == 1
    mine = Conversation.objects.get(user=bob)
    assert (mine.active_message, mine.messages.get().parent) == (None, None)
    assert theirs.messages.count() == 3


def test_what_was_being_written_is_cut_off_and_never_written_on(alice, bob):
    conversation = make_conversation(alice)
    conversation.messages.filter(role="assistant").update(status="running")
    bring(bob, exported(alice))
    assert set(Message.objects.filter(conversation__user=bob, role="assistant").values_list("status", flat=True)) == {
        "cancelled"
    }


def test_a_model_that_is_not_here_is_left_to_the_site(alice, bob):
    make_conversation(alice, model="no-such-model")
    bring(bob, exported(alice))
    assert Conversation.objects.get(user=bob).model == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"role": "system"}, "nor an assistant's"),
        ({"content": None}, "no content"),
        ({"status": "perfect"}, "status"),
        ({"finish_reason": []}, "status"),
        ({"message_id": 5}, "no message_id"),
    ],
)
def test_a_message_that_cannot_be_read_refuses_its_conversation_and_no_other(alice, bob, change, reason):
    make_conversation(alice)
    make_conversation(alice)
    document = exported(alice)
    document["conversations"][0]["messages"][1] |= change
    brought = bring(bob, document)
    assert [outcome for outcome, _ in brought.outcomes] == ["refused", "imported"]
    assert reason in brought.outcomes[0][1]
    assert Message.objects.filter(conversation__user=bob).count() == 3


def test_two_messages_with_one_id_refuse_their_conversation(alice, bob):
    make_conversation(alice)
    document = exported(alice)
    messages = document["conversations"][0]["messages"]
    messages.append(messages[0])
    assert bring(bob, document).outcomes == [("refused", "Two of its messages have the same message_id.")]


def test_a_newer_export_is_refused_with_a_sentence(alice):
    brought = bring(alice, {"format": "chat-export", "version": 2, "conversations": []})
    assert (brought.status, "newer version" in brought.report["error"]) == ("failed", True)


def begun_import(user, content) -> Import:
    """An import whose file is there and that no process works on."""
    name = files.new_name(".upload")
    with files.new_file(files.IMPORTS, name) as file:
        file.write(json.dumps(content).encode())
    return Import.objects.create(user=user, file=name, digest=b"d" * 32)


def test_an_import_that_was_killed_goes_on_where_it_was(alice):
    begun = begun_import(alice, [chain(2, conversation_id=f"c{number}") for number in range(3)])
    killed = lease.take(Import, begun.pk)
    brought = bring(alice, [chain(2, conversation_id="c0")])
    ImportedConversation.objects.update(brought_by=killed)
    assert brought.report["imported"] == 1
    reading.read(begun.pk)
    assert Import.objects.get(pk=begun.pk).status == "running"  # while its lease lasts
    Import.objects.filter(pk=begun.pk).update(lease_expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    reading.read(begun.pk)
    ended = Import.objects.get(pk=begun.pk)
    assert (ended.status, ended.report["imported"], ended.report["skipped"]) == ("done", 3, 0)
    assert Conversation.objects.filter(user=alice).count() == 3
    assert not files.path_of(files.IMPORTS, begun.file).exists()


def test_an_import_that_ended_is_not_read_again(alice):
    begun = begun_import(alice, [chain(2)])
    reading.read(begun.pk)
    reading.read(begun.pk)
    assert Import.objects.get(pk=begun.pk).report["imported"] == 1
    assert Conversation.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_imports_at_once_bring_each_conversation_once(transactional_db):
    alice = make_user()
    content = [chain(4, conversation_id=f"c{number}") for number in range(30)]
    begun = [begun_import(alice, content) for _ in range(3)]
    together = threading.Barrier(len(begun))

    def run(each: Import) -> None:
        try:
            together.wait(10)
            reading.read(each.pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[each]) for each in begun]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reports = [each.report for each in Import.objects.all()]
    assert sum(report["imported"] for report in reports) == 30
    assert sum(report["skipped"] for report in reports) == 60
    assert Conversation.objects.filter(user=alice).count() == 30
    assert Message.objects.count() == 120
