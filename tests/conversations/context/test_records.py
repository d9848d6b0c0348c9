"""The record of a prompt tells all that was in it, and is read back as it was written."""

import orjson
import pytest

from conversations.context.material import Material
from conversations.context.prompt import memory_line
from conversations.context.record import Record
from tests.conversations.context.counting import prompt_tokens, tokens_of
from tests.conversations.context.paths import counted, exchanges, fitted, memories_of, path_of, summary, words


@pytest.fixture
def material():
    return {
        "site_instructions": "Be brief.",
        "user_instructions": "Write in British English.",
        "instructions": "You help with a garden.",
        "memories": memories_of("likes tea", "has a dog"),
        "summaries": (summary(1, 40, "- the budget is 3,500 euros"),),
    }


def test_each_part_has_its_tokens(material):
    path = counted(path_of(*exchanges(40), ("user", "so?", [words(30)])))
    record = fitted(path, **material).record
    assert record.is_exact
    assert record.site_instructions_tokens == tokens_of("Be brief.")
    assert record.user_instructions_tokens == tokens_of("Write in British English.")
    assert record.instructions_tokens == tokens_of("You help with a garden.")
    assert [used.memory_id for used in record.memories] == [each.memory_id for each in material["memories"]]
    for used, memory in zip(record.memories, material["memories"], strict=True):
        assert tokens_of(memory_line(memory)) <= used.tokens <= tokens_of(memory_line(memory)) + 2
    assert (record.summary.epoch, record.summary.tokens) == (1, tokens_of("- the budget is 3,500 euros"))
    kept = {said.message_id: said for said in path}
    places = {message_id: place for place, message_id in enumerate(kept)}
    tail = path[places[record.tail_from] :]
    assert record.messages_kept == 2 + len(tail)
    own = sum(tokens_of(said.content) for said in (*path[:2], *tail))
    assert own + 30 <= record.messages_kept_tokens <= own + 40
    assert record.messages_dropped == len(path) - record.messages_kept
    assert record.head_up_to == path[1].message_id
    assert record.dropped_up_to == path[places[record.tail_from] - 1].message_id
    assert (record.passages_kept, record.passages_dropped) == (1, 0)


def test_the_whole_is_what_the_server_counts_and_no_less_than_its_parts(material):
    prompt = fitted(counted(path_of(*exchanges(40), ("user", "so?"))), **material)
    record = prompt.record
    assert record.total_tokens == prompt_tokens(prompt.messages)
    parts = (
        record.site_instructions_tokens + record.user_instructions_tokens + record.instructions_tokens
        + sum(used.tokens for used in record.memories) + record.summary.tokens + record.messages_kept_tokens
    )  # fmt: skip
    assert parts < record.total_tokens


def test_where_nothing_is_left_out_nothing_says_so():
    record = fitted(path_of(*exchanges(2), ("user", "so?"))).record
    assert (record.head_up_to, record.dropped_up_to, record.tail_from) == (None, None, None)
    assert (record.messages_kept, record.messages_dropped, record.summary) == (5, 0, None)
    assert not record.is_trimmed


def test_answers_without_text_are_neither_kept_nor_left_out():
    record = fitted(path_of(("user", "one"), ("assistant", ""), ("user", "two"))).record
    assert (record.messages_kept, record.messages_dropped) == (2, 0)


def test_messages_that_were_not_read_are_counted_where_their_number_is_known():
    path = path_of(*exchanges(3), ("user", "so?"))
    known = fitted(path, head_count=2, unread_messages=90).record
    assert known.messages_dropped == 90
    assert known.is_trimmed
    later = path_of(*exchanges(4), ("user", "so?"))
    assert fitted(later, head_count=2, unread_messages=None, previous=known).record.messages_dropped == 90


def test_of_messages_that_were_not_read_there_is_at_least_one():
    record = fitted(path_of(*exchanges(3), ("user", "so?")), head_count=2, unread_messages=None).record
    assert record.messages_dropped == 1
    assert record.is_trimmed


def test_a_beginning_that_is_gone_is_not_counted_twice():
    path = path_of(*exchanges(3), ("user", "so?"))
    lost = fitted(path[2:], head_count=0, unread_messages=12).record
    assert (lost.head_up_to, lost.tail_from) == (None, path[2].message_id)
    again = fitted(path, head_count=2, unread_messages=None, previous=lost).record
    assert again.messages_dropped == 12


def test_a_record_comes_back_as_it_was_stored(material):
    passages = [words(300, seed) for seed in range(7)]
    record = fitted(path_of(*exchanges(40), ("user", "so?", passages)), **material).record
    assert record.trimmed_passages
    assert Record.read(orjson.loads(orjson.dumps(record.as_json()))) == record
    plain = fitted(path_of(("user", "so?"))).record
    assert Record.read(orjson.loads(orjson.dumps(plain.as_json()))) == plain


def test_material_without_anything_has_a_record():
    assert fitted(Material(()).path).record.messages_kept == 0
