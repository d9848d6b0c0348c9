"""What is kept of a conversation in Redis is used only where it is surely right, and nothing depends on it."""

import asyncio
from dataclasses import replace

import orjson
import pytest
from prometheus_client import REGISTRY

from conversations.context.material import Said, Summarised
from conversations.context.record import Record
from conversations.models import Conversation
from conversations.services import context_cache
from conversations.services.context_cache import MOST_BYTES, ContextCache, Place
from conversations.services.history import History
from conversations.services.reading import Opening, history_after, material_of
from foundation.database import in_database
from foundation.ids import new_id
from tests.accounts.factories import make_user

PLACE = Place(user_id=new_id(), conversation_id=new_id(), tip=new_id(), version=3)
HISTORY = History(
    said=(
        Said(new_id(), "user", "What? 🤗\u2028", {"bpe": 3}, ("A passage.",)),
        Said(PLACE.tip, "assistant", "That."),
    ),
    head_count=1,
    unread_messages=None,
    summaries=(Summarised(new_id(), 2, "- It was said.", new_id()),),
)


@pytest.fixture
def cache(client):
    return ContextCache(client, 60)


@pytest.fixture
def counted():
    """Says how often each result has come since the test began."""

    def total(result):
        return REGISTRY.get_sample_value("chat_context_cache_total", {"result": result}) or 0

    before = {result: total(result) for result in ("hit", "miss", "stale")}
    return lambda: {result: int(total(result) - count) for result, count in before.items()}


def name_of(sync_client):
    """Return where the place's entry lies; others' may lie beside it."""
    (name,) = names_of(sync_client, "context")
    return name


def names_of(sync_client, part, conversation_id=None):
    return list(sync_client.scan_iter(match=f"*:{part}:{conversation_id or PLACE.conversation_id}"))


async def test_what_was_kept_is_found_as_it_was(cache, counted, sync_client):
    await cache.keep(PLACE, HISTORY)
    assert await cache.find(PLACE) == HISTORY
    assert counted() == {"hit": 1, "miss": 0, "stale": 0}
    assert 0 < sync_client.ttl(name_of(sync_client)) <= 60


async def test_nothing_is_found_where_nothing_was_kept(cache, counted):
    assert await cache.find(PLACE) is None
    assert counted() == {"hit": 0, "miss": 1, "stale": 0}


@pytest.mark.parametrize("changed", [{"version": 4}, {"tip": new_id()}], ids=["version", "tip"])
async def test_what_the_conversation_has_moved_on_from_is_not_used(cache, counted, changed):
    await cache.keep(PLACE, HISTORY)
    assert await cache.find(replace(PLACE, **changed)) is None
    assert counted() == {"hit": 0, "miss": 0, "stale": 1}


async def test_another_answer_finds_what_came_before_the_one_that_there_is(cache, counted):
    first, second = said("one", "1"), said("two", "2")
    covers_later = Summarised(new_id(), 2, "- Two.", second[0].message_id)
    covers_first = Summarised(new_id(), 1, "- One.", first[1].message_id)
    after_second = replace(PLACE, tip=second[1].message_id)
    await cache.keep(after_second, History(first + second, summaries=(covers_first, covers_later)))
    found = await cache.find(replace(PLACE, tip=first[1].message_id))
    assert found == History(first, summaries=(covers_first,))
    also_asked = await cache.find(replace(PLACE, tip=second[0].message_id))
    assert also_asked == History((*first, second[0]), summaries=(covers_first, covers_later))
    assert counted() == {"hit": 2, "miss": 0, "stale": 0}


async def test_a_branch_from_the_beginning_has_no_gap(cache):
    head, tail = said("one", "1"), said("nine", "9")
    await cache.keep(replace(PLACE, tip=tail[1].message_id), History(head + tail, 2, 6, HISTORY.summaries))
    assert await cache.find(replace(PLACE, tip=head[1].message_id)) == History(head)


@pytest.mark.parametrize("part", ["user_id", "conversation_id"])
async def test_what_is_another_s_is_not_used_though_it_lies_in_the_place(cache, counted, part, sync_client):
    await cache.keep(PLACE, HISTORY)
    entry = orjson.loads(sync_client.get(name_of(sync_client)))
    entry["place"][part] = str(new_id())
    sync_client.set(name_of(sync_client), orjson.dumps(entry))
    assert await cache.find(PLACE) is None
    assert counted() == {"hit": 0, "miss": 1, "stale": 0}


def broken(part, value):
    entry = orjson.loads(orjson.dumps({"place": PLACE, "history": HISTORY}))
    entry[part] = value
    return orjson.dumps(entry)


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"\xff",
        b"[]",
        b'"text"',
        b"{}",
        broken("place", {}),
        broken("place", [1]),
        broken("history", {"said": [1]}),
        broken("history", None),
        broken("history", {"said": [], "head_count": 0}),
    ],
    ids=[
        "nothing",
        "no JSON",
        "a list",
        "a text",
        "nothing in it",
        "no place",
        "a wrong place",
        "a wrong message",
        "no history",
        "half a history",
    ],
)
async def test_a_damaged_entry_counts_as_none(cache, counted, sync_client, stored):
    await cache.keep(PLACE, HISTORY)
    sync_client.set(name_of(sync_client), stored)
    assert await cache.find(PLACE) is None
    assert counted()["miss"] == 1


async def test_an_entry_of_another_type_counts_as_none(cache, sync_client):
    await cache.keep(PLACE, HISTORY)
    name = name_of(sync_client)
    sync_client.delete(name)
    sync_client.lpush(name, "x")
    assert await cache.find(PLACE) is None


async def test_a_large_history_is_not_kept_nor_is_the_one_before_it(cache, sync_client):
    await cache.keep(PLACE, HISTORY)
    large = replace(HISTORY, said=(Said(new_id(), "user", "x" * MOST_BYTES),))
    await cache.keep(PLACE, large)
    assert names_of(sync_client, "context") == []


async def test_with_no_time_to_keep_nothing_is_kept_nor_looked_up(client, counted, sync_client):
    cache = ContextCache(client, 0)
    await cache.keep(PLACE, HISTORY)
    assert await cache.find(PLACE) is None
    assert counted() == {"hit": 0, "miss": 0, "stale": 0}
    assert names_of(sync_client, "context") == []


async def test_where_redis_is_away_nothing_is_found_and_nothing_fails(own_valkey, client):
    cache = ContextCache(client, 60)
    await cache.keep(PLACE, HISTORY)
    own_valkey.stop()
    assert await cache.find(PLACE) is None
    await cache.keep(PLACE, HISTORY)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("whose", ["conversation", "owner"])
async def test_what_is_kept_of_a_conversation_goes_with_it(cache, sync_client, whose):
    conversation = await in_database(lambda: Conversation.objects.create(user=make_user()))
    conversation_id = conversation.pk
    await cache.keep(replace(PLACE, conversation_id=conversation_id), HISTORY)
    assert names_of(sync_client, "context", conversation_id) != []
    deleted = conversation if whose == "conversation" else conversation.user
    await in_database(deleted.delete)
    assert names_of(sync_client, "context", conversation_id) == []


async def test_an_answer_that_ended_just_before_the_conversation_was_deleted_brings_nothing_back(cache, sync_client):
    await asyncio.to_thread(context_cache.forget, PLACE.conversation_id)
    await cache.keep(PLACE, HISTORY)
    assert names_of(sync_client, "context") == []
    (gone,) = names_of(sync_client, "context-gone")
    assert sync_client.ttl(gone) > 0


def said(*texts):
    return tuple(Said(new_id(), "assistant" if number % 2 else "user", text) for number, text in enumerate(texts))


def material(path, **opening):
    return material_of(Opening(last=path[-1], **opening), History(path[:-1]))


def record(**fields):
    return Record(tokenizer="t", is_exact=True, window_tokens=100, budget_tokens=75, total_tokens=50, **fields)


def test_the_next_message_follows_all_that_was_said():
    path, answer = said("one", "1", "two"), Said(new_id(), "assistant", "2")
    assert history_after(material(path), record(), answer) == History((*path, answer))
    assert history_after(material(path), None, answer) == History((*path, answer))


def test_what_the_prompt_left_out_is_not_kept_for_the_next():
    path, answer = said("one", "1", "two", "2", "three", "3", "four"), Said(new_id(), "assistant", "4")
    trimmed = record(
        head_up_to=path[1].message_id,
        dropped_up_to=path[3].message_id,
        tail_from=path[4].message_id,
        messages_dropped=2,
    )
    assert history_after(material(path), trimmed, answer) == History((*path[:2], *path[4:], answer), 2, 2)
