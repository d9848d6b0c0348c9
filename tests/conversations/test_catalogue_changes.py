"""What staff change in the catalogue is in force in seconds, in pages and workers that go on running."""

import asyncio
from time import monotonic

import pytest

from conversations.models import Generation
from foundation.database import in_database
from foundation.redis import shared_client
from inference.draining import set_draining
from inference.fleet_reports import read_reports
from inference.fleet_seeding import apply_fleet
from inference.models import ModelAlias, ModelVersion, Replica, VersionWeight
from inference.testing.processes import twin_process
from inference.testing.settings import TwinSettings
from tests.inference.core.waiting import until

SAY = '@twin {"text": "Hello."}\nGo'
IN_FORCE_SECONDS = 10.0
"""Two are promised; a busy machine may need more, a process that has to be started again never comes to it."""


@pytest.fixture(scope="module")
def other_twin():
    with twin_process(TwinSettings(token_ms=1, model_id="Org/Extra")) as twin:
        yield twin


def add_model(site, url: str) -> None:
    """What staff would do in the admin: beside the settings' model, one more."""
    apply_fleet(f"small={site.twin.url}")
    version = ModelVersion.objects.create(name="extra-2026", model_id="Org/Extra")
    Replica.objects.create(version=version, url=url)
    VersionWeight.objects.create(alias=ModelAlias.objects.create(name="extra", position=1), version=version)


async def names(caller) -> list[str]:
    _, listed = await caller.call("GET", "/v1/models")
    return [model["id"] for model in listed["data"]]


async def offered(caller, wanted: list[str]) -> None:
    deadline = monotonic() + IN_FORCE_SECONDS
    while (found := await names(caller)) != wanted:
        assert monotonic() < deadline, found
        await asyncio.sleep(0.05)


async def test_a_new_model_answers_and_its_version_is_recorded(alice, site, other_twin):
    await in_database(add_model, site, other_twin.url)
    await offered(alice, ["small", "extra"])
    events = await alice.send(await alice.conversation(model="extra"), SAY)
    assert (events[0].data["model"], events[-1].data["finish_reason"]) == ("extra", "stop")
    generation = await in_database(Generation.objects.get, pk=events[0].data["message_id"])
    assert (generation.replica, generation.model_version) == (other_twin.url, "extra-2026")


async def test_a_model_that_is_taken_away_is_refused_with_those_that_are_left(alice, site, other_twin):
    await in_database(add_model, site, other_twin.url)
    await offered(alice, ["small", "extra"])
    conversation_id = await alice.conversation(model="extra")
    await in_database(ModelAlias.objects.filter(name="extra").delete)
    await offered(alice, ["small"])
    status, answer = await alice.call("POST", f"/v1/conversations/{conversation_id}/messages", {"content": SAY})
    assert (status, answer["error"]["details"]) == (404, {"allowed": ["auto", "small"]})


async def test_a_drained_replica_gets_no_new_request_until_it_is_put_back(alice, site):
    await in_database(apply_fleet, f"small={site.twin.url}")
    await in_database(set_draining, site.twin.url, is_draining=True)
    await until(lambda: _state_of(site.twin.url) == "draining", seconds=IN_FORCE_SECONDS)
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, SAY) as stream:
        await stream.until("queued")
        await in_database(set_draining, site.twin.url, is_draining=False)
        events = await stream.rest()
    assert events[-1].data["finish_reason"] == "stop"


def _state_of(url: str) -> str:
    report = read_reports(shared_client()).get(url)
    return report.state if report else "unknown"
