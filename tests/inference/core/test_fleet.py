"""A process knows which replicas answer, follows the catalogue, and tells the others."""

import asyncio

from foundation.redis import connect_async
from inference import queue
from inference.catalog import Catalog, Model, ModelVersion, Replica, ServerKind
from inference.exceptions import InvalidFleet
from inference.fleet_reports import read_reports, read_reports_async, write_report
from inference.permits import Offer
from inference.server_load import ServerLoad
from inference.testing.answers import expected_answer
from inference.testing.running import running_twin
from inference.testing.settings import TwinSettings
from inference.watch import Watch
from tests.inference.core.jobs import make_job, take, take_one
from tests.inference.core.waiting import until
from tests.inference.fleet.replicas import (
    catalog_of,
    chosen_of,
    fleet_of,
    go_dark,
    prompt,
    replica_of,
    replicas,
    text_of,
    twins_of,
)
from tests.inference.fleet.reports import line_of


def offered(fleet):
    return {offer.url: offer.permits for offer in fleet.fleet.offers(fleet.model)}


async def test_replicas_that_answer_are_known_with_their_limits(client, sync_client):
    async with replicas(2, None, model_id="M", max_input_tokens=99, max_total_tokens=100) as fleet:
        reports = await until(
            lambda: (told := read_reports(sync_client)) and all(r.is_healthy for r in told.values()) and told
        )
        assert await read_reports_async(client) == read_reports(sync_client)
        urls = {twin.url for twin in fleet.twins}
    assert reports.keys() == urls
    assert {(r.is_healthy, r.state, r.model_id, r.max_total_tokens, r.permits) for r in reports.values()} == {
        (True, "healthy", "M", 100, 128)
    }
    assert not read_reports(sync_client), "a worker that has gone takes its report with it"


async def test_a_replica_that_says_it_is_not_well_is_not_offered_until_it_is(sync_client):
    async with replicas(2, None) as fleet:
        one, other = fleet.twins
        one.switch_on("status", path="/health", status=503)
        await until(lambda: offered(fleet).keys() == {other.url})
        await until(lambda: (told := read_reports(sync_client).get(one.url)) and not told.is_healthy)
        assert read_reports(sync_client)[one.url].why
        one.switch_off()
        await until(lambda: offered(fleet).keys() == {one.url, other.url})


async def test_a_replica_that_was_never_reached_is_not_offered():
    async with twins_of(2) as (one, other), fleet_of(one, other) as fleet:
        await go_dark(other)
        fleet.catalog = catalog_of(replica_of(one), replica_of(other, permits=5))
        await until(lambda: other.url not in offered(fleet))


async def test_requests_of_this_process_are_counted_while_they_last():
    async with replicas(1, None) as fleet:
        state = fleet.state(0)
        with state.watching(Watch()), state.watching(Watch()):
            (candidate,) = fleet.fleet.candidates(fleet.model.replicas)
            assert (candidate.in_flight, state.in_flight) == (2, 2)
        assert state.in_flight == 0


async def test_what_others_ask_of_a_server_counts_as_its_load(sync_client):
    async with replicas(2, None, token_ms=1000) as fleet, asyncio.TaskGroup() as others:
        from_elsewhere = [others.create_task(_ask_past_the_fleet(fleet.twins[0])) for _ in range(3)]
        await until(lambda: fleet.state(0).foreign_load == 3)
        loads = {each.url: each.in_flight for each in fleet.fleet.candidates(fleet.model.replicas)}
        assert loads == {fleet.twins[0].url: 3, fleet.twins[1].url: 0}
        await until(lambda: (told := read_reports(sync_client).get(fleet.twins[0].url)) and told.foreign_load == 3)
        for each in from_elsewhere:
            each.cancel()


async def _ask_past_the_fleet(twin):
    async with twins_of(0), fleet_of(twin, known=False) as fleet:
        await fleet.answer("Hello", patience_seconds=60)


async def test_a_scrape_that_fails_is_no_sickness():
    async with replicas(1, None) as fleet:
        fleet.state(0).load = ServerLoad(7, 0)
        fleet.twins[0].switch_on("html_502", path="/metrics")
        await until(lambda: fleet.state(0).load is None)
        assert fleet.told(0) == "healthy"


async def test_replicas_are_watched_though_redis_refuses_reports(own_valkey):
    async with connect_async():
        own_valkey.command("CONFIG", "SET", "maxmemory", "1")
        async with replicas(2, None) as fleet:
            await until(lambda: own_valkey.command("INFO", "errorstats"))
            one, other = fleet.twins
            one.switch_on("status", path="/health", status=503)
            await until(lambda: offered(fleet).keys() == {other.url})


async def test_a_replica_that_is_added_answers_and_one_that_is_removed_does_not():
    async with twins_of(2) as (one, other), fleet_of(one) as fleet:
        assert offered(fleet).keys() == {one.url}
        fleet.catalog = catalog_of(replica_of(one), replica_of(other))
        await until(lambda: offered(fleet).keys() == {one.url, other.url})
        fleet.catalog = catalog_of(replica_of(other))
        await until(lambda: offered(fleet).keys() == {other.url})
        assert [each.replica.url for each in chosen_of(await fleet.answer("Hello"))] == [other.url]


async def test_an_answer_outlives_the_removal_of_its_replica():
    asked = prompt(tokens=30, token_ms=20)
    async with twins_of(2) as (one, other), fleet_of(one) as fleet:
        asking = asyncio.create_task(fleet.answer(asked))
        await one.wait_for(lambda ledger: ledger.open_records)
        fleet.catalog = catalog_of(replica_of(other))
        await until(lambda: one.url not in fleet.fleet.states)
        events = await asking
    assert text_of(events) == expected_answer(asked)
    assert len(chosen_of(events)) == 1


async def test_an_answer_that_waits_goes_to_a_replica_that_was_added_meanwhile():
    async with twins_of(2) as (one, other), fleet_of(one) as fleet:
        await go_dark(one)
        asking = asyncio.create_task(fleet.answer("Hello", patience_seconds=30))
        await until(lambda: not fleet.state(0).is_available)
        fleet.catalog = catalog_of(replica_of(one), replica_of(other))
        assert text_of(await asking) == expected_answer("Hello")


async def test_a_draining_replica_ends_its_answers_and_gets_no_new_ones(sync_client):
    asked = prompt(tokens=30, token_ms=20)
    async with replicas(2, None) as fleet:
        asking = asyncio.create_task(fleet.answer(asked))
        await until(lambda: sum(fleet.requests) == 1)
        draining = fleet.requests.index(1)
        fleet.catalog = catalog_of(
            *(replica_of(twin, is_draining=number == draining) for number, twin in enumerate(fleet.twins))
        )
        await fleet.until_told(draining, "draining")
        await fleet.answer("Hello")
        await fleet.answer("Hello again")
        assert fleet.requests[draining] == 1
        events = await asking
        url = fleet.twins[draining].url
        await until(lambda: (told := read_reports(sync_client).get(url)) and told.state == "draining")
    assert text_of(events) == expected_answer(asked)
    assert len(chosen_of(events)) == 1


async def test_a_catalogue_that_cannot_be_read_changes_nothing():
    async with twins_of(2) as (one, other), fleet_of(one) as fleet:
        fleet.error = InvalidFleet("MODEL_FLEET names no model.")
        await until(lambda: fleet.errors_raised >= 2)
        assert text_of(await fleet.answer("Hello")) == expected_answer("Hello")
        fleet.error = None
        fleet.catalog = catalog_of(replica_of(other))
        await until(lambda: offered(fleet).keys() == {other.url})


async def test_permits_that_change_are_offered_at_once():
    async with twins_of(1) as (one,), fleet_of(one) as fleet:
        fleet.catalog = catalog_of(replica_of(one, permits=3))
        await until(lambda: offered(fleet) == {one.url: 3})


async def test_a_conversation_keeps_its_version_and_the_other_version_stands_in():
    async with twins_of(2) as twins, fleet_of(*twins) as fleet:
        versions = tuple(ModelVersion(f"v{n}", (replica_of(twin),), weight=50) for n, twin in enumerate(twins))
        fleet.catalog = Catalog((Model("small", versions),), "small")
        await until(lambda: {state.version.name for state in fleet.fleet.states.values()} == {"v0", "v1"})
        (first,) = chosen_of(await fleet.answer("Hello", conversation_key=b"one"))
        for _ in range(5):
            (again,) = chosen_of(await fleet.answer("Hello", conversation_key=b"one"))
            assert again.version == first.version
        await go_dark(next(twin for twin in twins if twin.url == first.replica.url))
        (other,) = chosen_of(await fleet.answer("Hello", conversation_key=b"one"))
        assert other.version.name != first.version.name


async def test_a_reserved_place_is_kept_while_a_version_that_is_preferred_has_none(client, sync_client):
    async with twins_of(2) as twins, fleet_of(*twins) as fleet:
        versions = tuple(ModelVersion(f"v{n}", (replica_of(twin, permits=1),)) for n, twin in enumerate(twins))
        fleet.catalog = Catalog((Model("small", versions),), "small")
        await until(lambda: set(offered(fleet).values()) == {1})
        (first,) = chosen_of(await fleet.answer("Hello", conversation_key=b"one"))
        (other,) = offered(fleet).keys() - {first.replica.url}
        queue.enqueue(sync_client, [make_job() for _ in range(3)])
        preferred = await take_one(client, {"small": (Offer(first.replica.url, 1),)})
        reserved = (await take(client, {"small": (Offer(other, 1),)}, worker=fleet.permits.worker))[0]
        async with client.pubsub(ignore_subscribe_messages=True) as woken:
            await woken.subscribe(queue.wake_channel())
            (chosen,) = chosen_of(await fleet.answer("Hello", job=reserved, conversation_key=b"one"))
            await client.publish(queue.wake_channel(), "last")
            heard = await heard_until(woken, b"last")
    assert (preferred.permit_url, chosen.replica.url) == (first.replica.url, other)
    assert len(heard) == 1, "only the end of the answer made room for the third job"


async def heard_until(channel, last):
    heard = []
    async with asyncio.timeout(5):
        while (message := await channel.get_message(timeout=5)) is None or message["data"] != last:
            heard += [message] if message else []
    return heard


def test_a_server_of_two_versions_is_one_replica():
    one, again = Replica("http://one", ServerKind.TGI, permits=4), Replica("http://one", ServerKind.TGI, permits=8)
    assert Model("small", (ModelVersion("v0", (one,)), ModelVersion("v1", (again,)))).replicas == (one,)


async def test_an_answer_under_way_that_needs_a_place_comes_before_new_ones():
    async with twins_of(1) as (one,), fleet_of(one) as fleet:
        fleet.catalog = catalog_of(replica_of(one, permits=1))
        await until(lambda: offered(fleet) == {one.url: 1})
        first = asyncio.create_task(fleet.answer(prompt(tokens=40, token_ms=10)))
        await one.wait_for(lambda ledger: ledger.open_records)
        second = asyncio.create_task(fleet.answer("Hello"))
        await until(lambda: offered(fleet) == {})
        assert fleet.fleet.capacity() == {"small": 1}
        await asyncio.gather(first, second)
        assert offered(fleet) == {one.url: 1}


def test_a_replica_is_as_well_as_the_worker_finds_that_gets_on_best_with_it(sync_client):
    write_report(
        sync_client, "a:1", [line_of("http://x", in_flight=2, server_load=9, model_id="M", tokens_per_second=5.0)]
    )
    sick = line_of("http://x", is_healthy=False, state="ejected", why="It cannot be reached.", in_flight=3, seen_at=2.0)
    write_report(
        sync_client, "b:2", [sick, line_of("http://y", is_healthy=False, state="refused", why="Another model.")]
    )
    reports = read_reports(sync_client)
    x, y = reports["http://x"], reports["http://y"]
    assert (x.is_healthy, x.state, x.why, x.model_id) == (True, "healthy", "", "M")
    assert (x.in_flight, x.foreign_load, x.tokens_per_second, x.seen_at) == (5, 4, 5.0, 2.0)
    assert (y.is_healthy, y.state, y.why) == (False, "refused", "Another model.")


async def test_the_speed_of_a_replica_is_told(sync_client):
    async with running_twin(TwinSettings(token_ms=2)) as twin, fleet_of(twin) as fleet:
        asking = asyncio.create_task(fleet.answer(prompt(tokens=500), max_new_tokens=600))
        await until(lambda: (told := read_reports(sync_client).get(twin.url)) and told.tokens_per_second > 10)
        assert read_reports(sync_client)[twin.url].in_flight == 1
        await asking


async def test_a_replica_is_never_given_more_than_it_says_that_it_takes():
    async with replicas(1, None, permits=3) as fleet:
        await until(lambda: offered(fleet) == {fleet.twins[0].url: 3})
        assert fleet.fleet.capacity() == {"small": 3}


async def test_a_replica_that_is_given_less_than_it_takes_keeps_to_that():
    async with twins_of(2) as (one, other), fleet_of(one, other) as fleet:
        fleet.catalog = catalog_of(replica_of(one, permits=5), replica_of(other))
        await until(lambda: offered(fleet) == {one.url: 5, other.url: TwinSettings().permits})
