"""Of a conversation is read what its next prompt can hold: the path to the question, its beginning, its summaries."""

from datetime import timedelta

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.context.record import Record, UsedSummary
from conversations.models import Conversation, Memory, Message, Preference, Summary
from conversations.services import claims
from conversations.services.reading import MOST_HISTORY_BYTES, most_history_bytes
from tests.accounts.factories import make_user
from tests.inference.core.factories import answer_to, generation_of, make_generation, make_turns, read_material_of

pytestmark = pytest.mark.django_db


def record(**fields):
    return Record(tokenizer="t", is_exact=True, window_tokens=100, budget_tokens=75, total_tokens=50, **fields)


def path_to(message):
    """Return the messages that lead to a message, the first one first."""
    path = [message]
    while path[0].parent is not None:
        path.insert(0, path[0].parent)
    return path


def saw(answer, record):
    """Note what the model saw for an answer that there is."""
    return generation_of(answer, context=orjson.loads(orjson.dumps(record.as_json())))


def read(generation, **limits):
    return read_material_of(claims.claim(generation.pk), **limits)


def contents(material):
    return [said.content for said in material.path]


TEXTS = [f"{number:3} " * 20 for number in range(41)]


@pytest.fixture
def generation():
    """An answer to the last of 41 messages is wanted."""
    return make_turns(TEXTS)


@pytest.fixture
def path(generation):
    return path_to(generation.message.parent)


@pytest.fixture
def trimmed(generation, path):
    """The answer before left out the messages 2 to 29."""
    trimmed = record(head_up_to=path[1].pk, dropped_up_to=path[29].pk, tail_from=path[30].pk, messages_dropped=28)
    saw(path[39], trimmed)
    return trimmed


def test_without_a_record_the_whole_path_is_read(generation, path):
    material = read(generation)
    assert [said.message_id for said in material.path] == [message.pk for message in path]
    assert (contents(material), material.unread_messages, material.previous) == (TEXTS, 0, None)


def test_a_claim_and_its_material_take_two_statements_whatever_the_length():
    for turns in (3, 301):
        generation = make_turns(["text"] * turns)
        with CaptureQueriesContext(connection) as queries:
            assert len(read(generation).path) == turns
        assert len(queries) == 2


def test_the_first_message_takes_one_statement():
    generation = make_generation()
    with CaptureQueriesContext(connection) as queries:
        assert contents(read(generation)) == ["What?"]
    assert len(queries) == 1


def test_what_the_prompt_before_left_out_is_not_read(generation, trimmed):
    material = read(generation)
    assert contents(material) == TEXTS[:2] + TEXTS[30:]
    assert (material.head_count, material.unread_messages, material.previous) == (2, 28, trimmed)


def test_a_beginning_that_the_prompt_before_left_out_is_not_read(generation, path):
    saw(path[39], record(dropped_up_to=path[29].pk, tail_from=path[30].pk, messages_dropped=30))
    material = read(generation)
    assert contents(material) == TEXTS[30:]
    assert (material.head_count, material.unread_messages) == (0, 30)


def test_a_path_without_a_record_that_is_too_long_is_read_at_both_ends(generation):
    material = read(generation, most_bytes=1000)
    tail = contents(material)[2:]
    assert 3 < len(tail) < 12
    assert contents(material) == TEXTS[:2] + TEXTS[-len(tail) :]
    assert (material.head_count, material.unread_messages) == (2, 41 - len(tail) - 2)


def test_the_first_exchange_has_all_its_questions_and_answers():
    generation = make_turns(["x" * 100] * 40)
    path = path_to(generation.message.parent)
    Message.objects.filter(pk=path[1].pk).update(role="user", content="")
    Message.objects.filter(pk=path[4].pk).update(role="assistant")
    assert read(generation, most_bytes=1000).head_count == 6


def test_where_a_window_is_smaller_than_what_was_kept_the_beginning_is_there_all_the_same(generation, trimmed):
    material = read(generation, most_bytes=600)
    assert contents(material)[:2] == TEXTS[:2]
    assert len(contents(material)) < 10
    assert (material.head_count, material.unread_messages) == (2, None)


def test_a_message_is_read_whole_however_long_it_is():
    material = read(make_turns(["x" * 5000]), most_bytes=100)
    assert (contents(material), material.unread_messages) == (["x" * 5000], 0)


def test_the_record_is_that_of_the_nearest_answer_that_has_one(generation, path):
    older = record(messages_kept=3)
    saw(path[35], older)
    generation_of(path[37])
    generation_of(path[39], replica="http://warm")
    attempt = claims.claim(generation.pk)
    assert (attempt.opening.previous, attempt.hint_replica) == (older, "http://warm")


def test_the_record_of_a_sibling_is_not_taken(generation, path):
    sibling = Message.objects.create(
        conversation=generation.conversation, parent=path[38], role="assistant", content="Another."
    )
    saw(sibling, record(messages_kept=9))
    assert read(generation).previous is None


def test_a_record_that_cannot_be_read_counts_as_none(generation, path):
    generation_of(path[39], context={"tokenizer": 1})
    material = read(generation)
    assert (material.previous, contents(material)) == (None, TEXTS)


def test_a_claim_names_the_replica_that_wrote_the_answer_before():
    generation = make_turns(["one", "1", "two"])
    generation_of(generation.message.parent.parent, replica="http://warm")
    assert claims.claim(generation.pk).hint_replica == "http://warm"
    assert claims.claim(make_generation().pk).hint_replica == ""


def test_an_answer_that_is_continued_is_the_last_message_and_its_record_counts(path):
    partial = Message.objects.create(
        conversation=path[0].conversation, parent=path[40], role="assistant", content="It was a", status="cancelled"
    )
    own = record(messages_kept=41)
    saw(partial, own)
    material = read(answer_to(partial))
    assert contents(material) == [*TEXTS, "It was a"]
    assert material.previous == own


def test_a_circle_of_messages_comes_to_an_end():
    generation = make_turns(["one", "1", "two", "2", "three"])
    question = generation.message.parent
    Message.objects.filter(parent=None).update(parent=question)
    material = read(generation)
    assert contents(material)[-5:] == ["one", "1", "two", "2", "three"]
    assert material.unread_messages is None


def test_a_circle_further_up_comes_to_an_end():
    generation = make_turns(["one", "1", "two", "2", "three"])
    path = path_to(generation.message.parent)
    Message.objects.filter(pk=path[0].pk).update(parent=path[1])
    assert contents(read(generation)) == ["one", "1", "two", "2", "three"]


def test_a_path_that_leads_into_another_conversation_is_read_up_to_there(generation, path):
    other = Message.objects.create(
        conversation=Conversation.objects.create(user=make_user()), role="user", content="secret"
    )
    Message.objects.filter(pk=path[20].pk).update(parent=other)
    material = read(generation)
    assert (contents(material), material.unread_messages) == (TEXTS[20:], None)


def test_another_conversation_s_beginning_is_not_read(generation, path):
    foreign = make_turns(["secret", "secret too"]).message.parent
    saw(path[39], record(head_up_to=foreign.pk, dropped_up_to=path[29].pk, tail_from=path[30].pk))
    material = read(generation)
    assert (contents(material), material.head_count) == (TEXTS[30:], 0)


def summary(path, covered, made_for, epoch=1, **fields):
    return Summary.objects.create(
        conversation=path[0].conversation,
        covers_up_to=covered,
        made_for=made_for,
        epoch=epoch,
        text=f"Epoch {epoch}.",
        model="small",
        **fields,
    )


def epochs(material):
    return [each.epoch for each in material.summaries]


def test_summaries_of_this_path_are_read_the_oldest_first(generation, path, trimmed):
    for epoch in (1, 2, 3):
        summary(path, path[epoch * 10 - 1], path[31 + epoch], epoch)
    material = read(generation)
    assert epochs(material) == [1, 2, 3]
    assert material.summaries[2].covers_up_to == path[29].pk


def test_an_edit_above_what_a_summary_covers_ignores_it(path, trimmed):
    summary(path, path[29], path[39])
    edited = Message.objects.create(
        conversation=path[0].conversation, parent=path[19], role="user", content="Something else."
    )
    assert epochs(read(answer_to(edited))) == []


def test_a_branch_below_what_a_summary_covers_keeps_it(path):
    summary(path, path[9], path[39])
    branch = Message.objects.create(conversation=path[0].conversation, parent=path[19], role="user", content="Else.")
    assert epochs(read(answer_to(branch))) == [1]


def test_the_summary_in_use_is_read_though_nothing_that_names_it_is(generation, path):
    used = summary(path, path[9], path[11])
    for epoch in range(2, 10):
        summary(path, path[10 + 2 * epoch], path[39], epoch)
    saw(
        path[39],
        record(
            head_up_to=path[1].pk,
            dropped_up_to=path[29].pk,
            tail_from=path[30].pk,
            messages_dropped=28,
            summary=UsedSummary(used.pk, 1, 5),
        ),
    )
    assert epochs(read(generation)) == [1, 7, 8, 9]


def test_memories_in_force_are_read_the_oldest_first():
    user = make_user()
    now = timezone.now()
    held = {"user": user, "origin": "written", "confirmed_at": now}
    Memory.objects.create(content="Likes tea.", **held)
    Memory.objects.create(content="Lives in Rome.", expires_at=now + timedelta(days=1), **held)
    Memory.objects.create(content="Off.", enabled=False, **held)
    Memory.objects.create(content="Over.", expires_at=now - timedelta(days=1), **held)
    Memory.objects.create(content="Proposed.", user=user, origin="proposed")
    Memory.objects.create(content="A stranger's.", **{**held, "user": make_user()})
    material = read(make_generation(Conversation.objects.create(user=user)))
    assert [memory.content for memory in material.memories] == ["Likes tea.", "Lives in Rome."]


@pytest.mark.parametrize(("temporary", "uses_memories"), [(True, True), (False, False)])
def test_a_temporary_conversation_and_who_wants_none_get_no_memories(temporary, uses_memories):
    user = make_user()
    Memory.objects.create(user=user, content="Likes tea.", origin="written", confirmed_at=timezone.now())
    Preference.objects.create(user=user, instructions="Be formal.", uses_memories=uses_memories)
    material = read(make_generation(Conversation.objects.create(user=user, temporary=temporary)))
    assert (material.memories, material.user_instructions) == ((), "Be formal.")


def test_stored_counts_are_read(generation, path):
    Message.objects.filter(pk__in=[path[3].pk, path[40].pk]).update(token_counts={"bpe": 7})
    material = read(generation)
    assert [dict(said.token_counts) for said in (material.path[2], material.path[3], material.path[40])] == [
        {},
        {"bpe": 7},
        {"bpe": 7},
    ]


def test_a_question_of_another_conversation_yields_nothing_of_it():
    foreign = make_turns(["secret"]).message.parent
    conversation = Conversation.objects.create(user=make_user())
    answer = Message.objects.create(conversation=conversation, parent=foreign, role="assistant", status="queued")
    assert read(generation_of(answer)).path == ()


def test_as_much_is_read_as_may_fit_into_the_largest_window():
    assert most_history_bytes([1000, 4000]) == 16 * 4000
    assert most_history_bytes([10**9]) == MOST_HISTORY_BYTES


@pytest.mark.parametrize("windows", [[], [None], [1000, None]])
def test_where_a_window_is_unknown_as_much_is_read_as_ever_is(windows):
    assert most_history_bytes(windows) == MOST_HISTORY_BYTES
