"""Readers that come at the same time are answered together, each with its own."""

import asyncio
from itertools import islice

import pytest
import pytest_asyncio

from conversations.streaming import presence
from conversations.streaming.joining import MOST_EVENTS, Joining
from foundation.ids import new_id
from foundation.redis import REDIS_UNREACHABLE, connect_async
from inference.positions import BEGINNING
from inference.token_stream import events_key, token_event


@pytest_asyncio.fixture
async def joining(client):
    joining = Joining(client, "watcher:this-process")
    yield joining
    await joining.close()


def tokens(text):
    position = BEGINNING
    while True:
        event = token_event(position, text)
        position = event.position
        yield event


def published(sync_client, text, count):
    generation_id = new_id()
    for event in islice(tokens(text), count):
        sync_client.xadd(events_key(generation_id), {"t": event.type, "d": event.data}, id=event.position.redis_id)
    return generation_id


async def test_each_of_many_readers_gets_its_own(joining, sync_client):
    generations = {f"Text {number}": published(sync_client, f"Text {number}", 3) for number in range(30)}
    answers = await asyncio.gather(*(joining.join(each, BEGINNING) for each in generations.values()))
    assert [answer[0].text for answer in answers] == list(generations)
    assert {len(answer) for answer in answers} == {3}


async def test_a_reader_gets_what_stands_after_its_position(joining, sync_client):
    generation_id = published(sync_client, "öä", 5)
    third = list(islice(tokens("öä"), 3))[-1]
    assert [each.text for each in await joining.join(generation_id, third.position)] == ["öä", "öä"]


async def test_more_than_one_answer_holds_is_told_by_its_length(joining, sync_client):
    assert len(await joining.join(published(sync_client, "x", MOST_EVENTS + 1), BEGINNING)) == MOST_EVENTS


async def test_who_joins_watches(joining, client):
    generation_id = new_id()
    assert await joining.join(generation_id, BEGINNING) == []
    assert await presence.is_watched(client, generation_id)
    assert await presence.was_ever_watched(client, generation_id)


async def test_a_reader_who_leaves_meanwhile_takes_nothing_from_the_others(joining, sync_client):
    generation_id = published(sync_client, "x", 2)
    leaving = asyncio.create_task(joining.join(generation_id, BEGINNING))
    staying = asyncio.create_task(joining.join(generation_id, BEGINNING))
    await asyncio.sleep(0)
    leaving.cancel()
    assert len(await staying) == 2


async def test_without_redis_each_is_told_so_and_served_when_it_is_back(own_valkey):
    async with connect_async() as client:
        joining = Joining(client, "watcher:this-process")
        assert await joining.join(new_id(), BEGINNING) == []
        own_valkey.stop()
        for failure in await asyncio.gather(
            *(joining.join(new_id(), BEGINNING) for _ in range(3)), return_exceptions=True
        ):
            assert isinstance(failure, REDIS_UNREACHABLE)
        own_valkey.start()
        assert await joining.join(new_id(), BEGINNING) == []
        await joining.close()


@pytest.mark.parametrize("count", [1, 700])
async def test_what_is_asked_while_others_are_served_is_served_next(joining, sync_client, count):
    generation_id = published(sync_client, "x", 1)
    first = asyncio.create_task(joining.join(generation_id, BEGINNING))
    await asyncio.sleep(0)
    others = await asyncio.gather(*(joining.join(generation_id, BEGINNING) for _ in range(count)))
    assert [len(each) for each in [await first, *others]] == [1] * (count + 1)
