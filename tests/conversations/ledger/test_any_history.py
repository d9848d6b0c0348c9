"""Whatever is done with answers, and whatever befalls the product meanwhile, the ledger is right to the token."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.conversations.ledger.busy_site import busy_site, prepare
from tests.conversations.ledger.histories import STEPS
from tests.conversations.ledger.reckoning import live_through

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def site_of_this_module(no_other_worker, tmp_path_factory):
    with busy_site(tmp_path_factory.mktemp("histories") / "log") as site:
        yield site


@pytest.fixture
def site(site_of_this_module, transactional_db):
    prepare(site_of_this_module)
    return site_of_this_module


@settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=st.lists(STEPS, min_size=12, max_size=16))
async def test_the_ledger_is_right_to_the_token_after_any_history(http, site, reservations, steps):
    """`make chaos` lives through many more, and others each time."""
    await live_through(site, http, steps)
