"""A process knows which replicas answer, and tells the others."""

from contextlib import asynccontextmanager

from foundation.redis import connect_async
from inference import router
from inference.catalog import parse_fleet
from inference.fleet import open_fleet, read_reports
from inference.testing.running import running_twin
from inference.testing.settings import TwinSettings
from tests.inference.core.waiting import until


@asynccontextmanager
async def fleet_of_two(client):
    settings = TwinSettings(model_id="M", max_input_tokens=99, max_total_tokens=100)
    async with running_twin(settings) as one, running_twin(settings) as other:
        catalog = parse_fleet(f"small={one.url},{other.url}")
        async with open_fleet(catalog, client, api_key=None) as fleet:
            yield one, other, catalog.models[0], fleet


async def test_replicas_that_answer_are_known_with_their_limits(client, sync_client):
    async with fleet_of_two(client) as (one, other, model, fleet):
        await until(lambda: all(state.info for state in fleet.of(model.replicas)))
        reports = await until(lambda: read_reports(sync_client))
    assert reports.keys() == {one.url, other.url}
    assert {(r.is_healthy, r.model_id, r.max_total_tokens) for r in reports.values()} == {(True, "M", 100)}


async def test_a_replica_that_says_it_is_not_well_is_not_chosen_until_it_is(client, sync_client):
    async with fleet_of_two(client) as (one, other, model, fleet):
        await until(lambda: all(state.info for state in fleet.of(model.replicas)))
        one.switch_on("status", path="/health", status=503)
        await until(lambda: router.choose(fleet, model).replica.url == other.url, seconds=20)
        await until(lambda: not read_reports(sync_client)[one.url].is_healthy)
        one.switch_off()
        await until(lambda: router.choose(fleet, model).replica.url == one.url, seconds=20)


async def test_a_replica_that_failed_this_request_comes_last(client):
    async with fleet_of_two(client) as (_, _, model, fleet):
        first, second = model.replicas
        assert router.choose(fleet, model, failed={first}).replica == second
        assert router.choose(fleet, model, failed={second}).replica == first
        assert router.choose(fleet, model, failed={first, second}).replica in model.replicas


async def test_the_least_busy_replica_is_chosen(client):
    async with fleet_of_two(client) as (_, _, model, fleet):
        first, second = fleet.of(model.replicas)
        with first.one_request():
            assert router.choose(fleet, model) is second
            with second.one_request(), second.one_request():
                assert router.choose(fleet, model) is first
        assert [first.in_flight, second.in_flight] == [0, 0]


async def test_replicas_are_watched_though_redis_refuses_reports(own_valkey):
    async with connect_async() as client:
        own_valkey.command("CONFIG", "SET", "maxmemory", "1")
        async with fleet_of_two(client) as (one, other, model, fleet):
            await until(lambda: own_valkey.command("INFO", "errorstats"))
            one.switch_on("status", path="/health", status=503)
            await until(lambda: router.choose(fleet, model).replica.url == other.url, seconds=20)
