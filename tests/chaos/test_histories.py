"""Histories of answers without end: what is asked, stopped, deleted and killed by chance, the ledger is right."""

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.conversations.conftest import http  # noqa: F401 — a fixture
from tests.conversations.ledger.busy_site import busy_site, prepare
from tests.conversations.ledger.conftest import reservations  # noqa: F401 — a fixture
from tests.conversations.ledger.histories import STEPS
from tests.conversations.ledger.reckoning import live_through

HISTORIES = int(os.environ.get("CHAOS_HISTORIES", "20"))
SEED = int(os.environ.get("CHAOS_SEED", "20"))

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def site_of_this_module(django_db_setup, django_db_blocker, tmp_path_factory):
    with django_db_blocker.unblock(), busy_site(tmp_path_factory.mktemp("histories") / "log") as site:
        yield site


@pytest.fixture
def site(site_of_this_module, transactional_db):
    prepare(site_of_this_module)
    return site_of_this_module


@pytest.fixture
def toll():
    counted = Counter()
    yield counted
    for what, count in sorted(counted.items()):
        print(f"{count:6} {what}")


@seed(SEED)
@settings(
    max_examples=HISTORIES,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=st.lists(STEPS, min_size=25, max_size=40))
async def test_the_ledger_is_right_after_any_history(http, site, reservations, toll, steps):  # noqa: F811 — fixtures
    print(steps)
    history = await live_through(site, http, steps)
    toll.update(history.seen)
