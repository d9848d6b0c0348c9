"""An answer that nobody watches any more is stopped, unless somebody comes back in time, here or elsewhere."""

import asyncio
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from conversations.streaming import presence
from conversations.streaming.hub import Hub
from foundation.database import in_database
from inference.token_stream import state_key
from tests.inference.core.factories import make_attempt, read_generation, read_snapshot
from tests.inference.core.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _short_grace_time(settings):
    settings.GRACE_SECONDS = 0.2


@asynccontextmanager
async def web_process():
    """Run a hub as one web process has it."""
    hub = Hub()
    hub.start()
    try:
        yield hub
    finally:
        await hub.close()


@pytest_asyncio.fixture
async def one():
    async with web_process() as hub:
        yield hub


@pytest_asyncio.fixture
async def other():
    async with web_process() as hub:
        yield hub


async def running(**fields):
    attempt = await in_database(make_attempt, **fields)
    return await in_database(read_snapshot, attempt.generation_id)


async def is_stopped(snapshot):
    return (await in_database(read_generation, snapshot.generation_id)).cancel_requested_at is not None


async def clocks_ran_out(*hubs):
    await until(lambda: not any(hub._grace._clocks for hub in hubs))


async def test_an_answer_is_stopped_after_its_last_reader_has_left(one):
    snapshot = await running()
    async with one.reading(snapshot):
        pass
    await until(lambda: is_stopped(snapshot))


async def test_an_answer_goes_on_while_somebody_watches(one):
    snapshot = await running()
    async with one.reading(snapshot):
        async with one.reading(snapshot):
            pass
        await clocks_ran_out(one)
        assert not await is_stopped(snapshot)


async def test_who_comes_back_in_time_stops_the_clock(one, settings):
    settings.GRACE_SECONDS = 600
    snapshot = await running()
    async with one.reading(snapshot):
        pass
    assert one._grace._clocks
    async with one.reading(snapshot):
        await clocks_ran_out(one)
        assert await presence.is_watched(one.client, snapshot.generation_id)


async def test_an_answer_that_is_watched_in_another_process_goes_on(one, other):
    snapshot = await running()
    async with other.reading(snapshot):
        async with one.reading(snapshot):
            pass
        await clocks_ran_out(one)
        assert not await is_stopped(snapshot)
    await until(lambda: is_stopped(snapshot))


async def test_an_answer_whose_reader_moved_to_another_process_goes_on(one, other):
    snapshot = await running()
    async with one.reading(snapshot):
        pass
    async with other.reading(snapshot):
        await clocks_ran_out(one)
        assert not await is_stopped(snapshot)


async def test_an_answer_in_the_background_goes_on_unwatched(one):
    snapshot = await running(is_background=True)
    async with one.reading(snapshot):
        pass
    await clocks_ran_out(one)
    assert not await is_stopped(snapshot)


async def test_a_reader_who_has_seen_the_end_starts_no_clock(one):
    async with one.reading(await running()) as reader:
        reader.has_seen_the_end = True
    assert not one._grace._clocks


async def test_what_a_dead_process_watched_goes_on(one, other, client):
    """It did not leave; its readers were cut off and may return. Its sign runs out by itself."""
    snapshot = await running()
    await presence.watch(client, "watcher:of-a-dead-process", [snapshot.generation_id])
    async with one.reading(snapshot):
        pass
    await clocks_ran_out(one)
    assert not await is_stopped(snapshot)


async def test_a_sign_that_was_not_renewed_counts_no_more(client):
    generation_id = (await running()).generation_id
    await client.hset(state_key(generation_id), "watcher:of-a-dead-process", 1.0)
    assert not await presence.is_watched(client, generation_id)


async def test_that_somebody_came_is_remembered(one, client):
    snapshot = await running()
    assert not await presence.was_ever_watched(client, snapshot.generation_id)
    async with one.reading(snapshot):
        assert await presence.was_ever_watched(client, snapshot.generation_id)
    await clocks_ran_out(one)
    assert await presence.was_ever_watched(client, snapshot.generation_id)


async def test_a_redis_that_forgot_who_watches_is_told_again_when_it_is_back(own_valkey):
    async with web_process() as hub:
        snapshot = await running()
        async with hub.reading(snapshot):
            await until(lambda: hub._renewed_at)
            own_valkey.restart()
            await until(lambda: _is_known(own_valkey, snapshot), seconds=presence.RENEW_SECONDS / 2)


def _is_known(own_valkey, snapshot):
    return own_valkey.command("HEXISTS", state_key(snapshot.generation_id), "watched")


async def test_no_answer_is_stopped_while_redis_cannot_say_who_watches(own_valkey):
    async with web_process() as hub:
        snapshot = await running()
        async with hub.reading(snapshot):
            own_valkey.stop()
        await clocks_ran_out(hub)
        own_valkey.start()
        assert not await is_stopped(snapshot)


async def test_closing_stops_the_clocks(settings):
    settings.GRACE_SECONDS = 600
    tasks_before = asyncio.all_tasks()
    async with web_process() as hub, hub.reading(await running()):
        pass
    assert asyncio.all_tasks() == tasks_before
