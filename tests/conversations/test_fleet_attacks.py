"""Model servers that say what nobody expects: their answers are read all the same, and stored once."""

import asyncio

import pytest

from conversations.models import Generation
from foundation.database import in_database
from foundation.redis import shared_client
from inference.fleet_reports import read_reports
from inference.fleet_seeding import apply_fleet
from inference.testing.processes import twin_process
from inference.testing.settings import TwinSettings
from tests.api_client import text_of
from tests.running_site import wait_until


@pytest.fixture
def served_by(site):
    """Lets a server be the only one, and the site's twin again afterwards."""

    def change(url):
        apply_fleet(f"small={url}")
        wait_until(lambda: is_all_there_is(url), 40, f"the fleet to be {url}")

    # A worker that is still to start would bring its own settings.
    change(site.twin.url)
    yield change
    change(site.twin.url)


def is_all_there_is(url):
    reports = read_reports(shared_client())
    return reports.keys() == {url} and reports[url].is_healthy


async def test_a_server_whose_name_is_too_long_to_be_stored_answers_at_the_first_attempt(alice, served_by):
    with twin_process(TwinSettings(token_ms=1, model_id="x" * 500)) as twin:
        await in_database(served_by, twin.url)
        async with asyncio.timeout(20):
            events = await alice.send(await alice.conversation(), '@twin {"text": "Here I am."}\nGo')
        assert text_of(events) == "Here I am."
        generation = await Generation.objects.aget(pk=events[0].data["generation_id"])
        assert (generation.status, generation.attempt, generation.model_version) == ("complete", 1, "small")
        assert len(twin.report()["requests"]) > 0
