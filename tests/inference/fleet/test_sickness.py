"""A replica that fails, stands still or lies about its model is left out, tried again, and trusted little by little."""

import asyncio
from dataclasses import replace

import pytest

from inference.catalog import Replica, ServerKind
from inference.fleet_reports import read_reports
from inference.health import BreakerTimes
from inference.testing.answers import expected_answer
from inference.testing.running import running_twin
from inference.testing.settings import TwinSettings
from tests.inference.core.waiting import until
from tests.inference.fleet.replicas import (
    PATIENT,
    QUICK,
    catalog_of,
    chosen_of,
    come_back,
    fleet_of,
    go_dark,
    prompt,
    replica_of,
    replicas,
    text_of,
    twins_of,
)

SLOW_START = replace(QUICK, breaker=replace(QUICK.breaker, slow_start=600))
LASTING = replace(QUICK, breaker=BreakerTimes(cool_down=600, longest_cool_down=600))


async def failing_answers(fleet, sick, count):
    """Ask until so many answers have met the sick replica, each of which then goes on at another one."""
    while fleet.requests[sick] < count and fleet.told(sick) == "healthy":
        asked = prompt(tokens=5)
        assert text_of(await fleet.answer(asked)) == expected_answer(asked)


@pytest.mark.parametrize("fault", ["html_502", "garbage", "clean_end", "empty_401"])
async def test_a_replica_at_which_three_answers_in_a_row_fail_is_out_though_it_says_it_is_well(fault):
    async with replicas(2, None, pace=LASTING) as fleet:
        fleet.twins[0].switch_on(fault)
        await failing_answers(fleet, 0, 3)
        assert fleet.told(0) == "ejected"
        asked_before = fleet.requests[0]
        await fleet.answer("Hello")
        assert fleet.requests[0] == asked_before


async def test_a_request_that_is_wrong_itself_says_nothing_of_the_replica():
    async with replicas(2, None) as fleet:
        fleet.twins[0].switch_on("plain_422")
        fleet.twins[1].switch_on("plain_422")
        for _ in range(8):
            with pytest.raises(Exception, match="invalid_request"):
                await fleet.answer("Hello")
        assert (fleet.told(0), fleet.told(1)) == ("healthy", "healthy")


async def test_the_last_replica_is_not_given_up_for_its_failures():
    async with replicas(1, None) as fleet:
        for number in range(5):
            asked = prompt({"kind": "html_502"}, tokens=3, text=f"{number}")
            assert text_of(await fleet.answer(asked)) == str(number)
        assert fleet.told(0) == "healthy"


async def test_a_sick_replica_is_tried_with_a_real_generation_and_then_starts_slowly():
    async with replicas(2, None, pace=SLOW_START) as fleet:
        fleet.twins[0].switch_on("html_502")
        await failing_answers(fleet, 0, 3)
        # The trial fails, and fails again: it is well by its own word only.
        await fleet.twins[0].wait_for(lambda ledger: len([r for r in ledger.records if r.prompt == "Hi"]) >= 2)
        assert not fleet.state(0).is_available
        fleet.twins[0].switch_off()
        await fleet.until_told(0, "slow_start")
        permits = {each.url: each.permits for each in fleet.fleet.candidates(fleet.model.replicas)}
        assert permits == {fleet.twins[0].url: 1, fleet.twins[1].url: 128}


async def test_a_slow_start_is_a_full_one_where_no_other_replica_could_spare_it():
    async with replicas(1, None, pace=SLOW_START) as fleet:
        await go_dark(fleet.twins[0])
        await fleet.until_told(0, "ejected")
        await come_back(fleet.twins[0])
        await fleet.until_told(0, "slow_start")
        assert [each.permits for each in fleet.fleet.candidates(fleet.model.replicas)] == [128]


async def test_a_slow_start_ends_by_itself():
    async with replicas(2, None) as fleet:
        await go_dark(fleet.twins[0])
        await fleet.until_told(0, "ejected")
        await come_back(fleet.twins[0])
        await fleet.until_told(0, "slow_start")
        await fleet.until_told(0, "healthy")


async def test_a_replica_that_flaps_loses_no_answer():
    async with replicas(2, None) as fleet:
        asked = [prompt(tokens=30, token_ms=5, text=f"Answer {n} " + "word " * 30) for n in range(12)]
        asking = [asyncio.create_task(fleet.answer(each, patience_seconds=20)) for each in asked]
        for _ in range(3):
            await go_dark(fleet.twins[0])
            await fleet.until_told(0, "ejected")
            await come_back(fleet.twins[0])
            await until(lambda: fleet.state(0).is_available)
        for each, events in zip(asked, await asyncio.gather(*asking), strict=True):
            assert text_of(events) == expected_answer(each)


async def test_a_full_replica_is_left_alone_for_a_moment_and_is_not_sick():
    async with replicas(2, None) as fleet:
        fleet.twins[0].switch_on("overloaded_429")
        for _ in range(12):
            assert text_of(await fleet.answer("Hello")) == expected_answer("Hello")
        assert fleet.requests[0] < 12
        assert fleet.told(0) == "healthy"


async def wedge(twin):
    """Let a twin accept everything and write nothing more, and say that it is well."""
    return twin.switch_on("stall", after=0)


async def test_a_replica_that_is_wedged_but_says_it_is_well_is_out_and_its_answers_go_on_elsewhere():
    asked = [prompt({"kind": "stall", "after": 5}, tokens=12, text=f"Answer {n} of many more words.") for n in range(4)]
    async with twins_of(2) as (one, other), fleet_of(one, pace=LASTING, timeouts=PATIENT) as fleet:
        fleet.twins = (one, other)
        asking = [asyncio.create_task(fleet.answer(each)) for each in asked]
        await one.wait_for(lambda ledger: len([r for r in ledger.records if r.is_held]) == 4)
        await wedge(one)
        fleet.catalog = catalog_of(replica_of(one), replica_of(other))
        answers = await asyncio.gather(*asking)
        assert fleet.told(0) == "ejected"
        assert "wedged" in fleet.state(0).health.why
        assert fleet.told(1) == "healthy"
        await one.wait_for(lambda ledger: not ledger.open_records)
    for each, events in zip(asked, answers, strict=True):
        assert text_of(events) == expected_answer(each)
        assert [(chosen.replica.url, chosen.is_resumed) for chosen in chosen_of(events)] == [
            (one.url, False),
            (other.url, True),
        ]


async def test_with_the_product_s_own_pace_a_wedged_replica_is_out_within_ten_seconds():
    pace = replace(QUICK, look_seconds=0.5, silence_seconds=4.0, stall_seconds=60, first_token_stall_seconds=60)
    async with replicas(2, None, pace=pace, timeouts=PATIENT) as fleet:
        for twin in fleet.twins:
            await wedge(twin)
        loop = asyncio.get_running_loop()
        began = loop.time()
        asking = asyncio.create_task(fleet.answer("Hello", patience_seconds=60))
        await until(lambda: sum(fleet.requests) == 1)
        sick = fleet.requests.index(1)
        fleet.twins[1 - sick].switch_off()
        assert text_of(await asking) == expected_answer("Hello")
        assert loop.time() - began < 10
        assert not fleet.state(sick).is_available


async def test_new_requests_do_not_hide_that_a_replica_is_wedged():
    async with replicas(2, None, pace=LASTING, timeouts=PATIENT) as fleet:
        await wedge(fleet.twins[0])
        asking = []
        async with asyncio.timeout(20):
            while fleet.told(0) == "healthy":
                asking.append(asyncio.create_task(fleet.answer("Hello", patience_seconds=30)))
                await asyncio.wait(asking, timeout=0.1, return_when=asyncio.ALL_COMPLETED)
        for events in await asyncio.gather(*asking):
            assert text_of(events) == expected_answer("Hello")


async def test_one_answer_that_stands_still_is_moved_while_its_replica_goes_on():
    asked = prompt({"kind": "stall", "after": 5}, tokens=12)
    async with replicas(2, None, timeouts=PATIENT) as fleet:
        events = await fleet.answer(asked, patience_seconds=30)
        assert text_of(events) == expected_answer(asked)
        assert [chosen.is_resumed for chosen in chosen_of(events)] == [False, True]
        assert {fleet.told(0), fleet.told(1)} == {"healthy"}


async def test_the_only_replica_may_take_its_time():
    asked = prompt(tokens=5, prefill_ms=1500)
    async with replicas(1, None, timeouts=PATIENT) as fleet:
        assert text_of(await fleet.answer(asked)) == expected_answer(asked)
        assert (fleet.requests, fleet.told(0)) == ([1], "healthy")


async def test_a_request_that_silences_every_replica_is_left_at_the_third():
    asked = prompt(tokens=5, prefill_ms=4000)
    async with replicas(2, None, timeouts=PATIENT) as fleet:
        events = await fleet.answer(asked, patience_seconds=60)
        assert text_of(events) == expected_answer(asked)
        assert sum(fleet.requests) <= 3


@pytest.mark.parametrize("pinned", [{"model_id": "M2"}, {"revision": "other"}, {"model_id": "M", "revision": "other"}])
async def test_a_replica_that_runs_another_model_than_its_version_names_is_refused_until_it_does_not(
    pinned, sync_client
):
    async with twins_of(1, model_id="M") as (twin,), fleet_of(twin) as fleet:
        sha = fleet.state(0).info.model_sha
        fleet.catalog = catalog_of(replica_of(twin), **pinned)
        await fleet.until_told(0, "refused")
        assert not fleet.fleet.offers(fleet.model)
        report = await until(
            lambda: (told := read_reports(sync_client).get(twin.url)) and told.state == "refused" and told
        )
        assert not report.is_healthy
        wanted, found = (pinned["model_id"], "M") if pinned.get("model_id", "M") != "M" else ("other", sha)
        assert repr(wanted) in report.why
        assert repr(found) in report.why
        fleet.catalog = catalog_of(replica_of(twin), model_id="M", revision=sha)
        await until(lambda: fleet.fleet.offers(fleet.model))


async def test_a_replica_that_comes_back_with_another_model_is_refused():
    async with twins_of(2, model_id="M") as twins:
        catalog = catalog_of(*map(replica_of, twins), model_id="M")
        async with fleet_of(*twins, catalog=catalog) as fleet:
            await go_dark(twins[0])
            await fleet.until_told(0, "ejected")
            twins[0].change(model_id="N")
            await come_back(twins[0])
            await fleet.until_told(0, "refused")
            twins[0].change(model_id="M")
            await until(lambda: fleet.state(0).is_available)


async def test_a_replica_that_changes_its_model_without_being_gone_for_a_moment_is_refused_by_the_next_probe():
    seldom = replace(QUICK, identity_seconds=3600)
    async with replicas(2, None, pace=seldom, model_id="M") as fleet:
        fleet.catalog = catalog_of(*map(replica_of, fleet.twins), model_id="M")
        await until(lambda: fleet.state(0).version.model_id == "M")
        fleet.twins[0].change(model_id="N")
        await fleet.until_told(0, "refused")
        assert fleet.told(1) == "healthy"


async def test_an_openai_compatible_server_is_known_by_the_models_that_it_lists():
    async with running_twin(TwinSettings(dialect="openai", model_id="M", token_ms=1)) as twin:
        replica = Replica(twin.url, ServerKind.OPENAI_COMPATIBLE)
        async with fleet_of(twin, catalog=catalog_of(replica, model_id="M", revision="ignored")) as fleet:
            assert text_of(await fleet.answer("Hello")) == expected_answer("Hello")
            fleet.catalog = catalog_of(replica, model_id="N")
            await fleet.until_told(0, "refused")


async def test_a_server_that_does_not_say_what_it_runs_may_answer_where_nothing_is_pinned():
    async with twins_of(1) as (twin,):
        twin.switch_on("html_502", path="/info")
        async with fleet_of(twin) as fleet:
            assert text_of(await fleet.answer("Hello")) == expected_answer("Hello")
            fleet.catalog = catalog_of(replica_of(twin), model_id="twin")
            await fleet.until_told(0, "refused")
            twin.switch_off()
            await until(lambda: fleet.state(0).is_available)
