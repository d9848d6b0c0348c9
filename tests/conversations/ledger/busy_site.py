"""The product under more than it can do at once, with tiers that leave little room."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accounts.models import ModelLimit, Tier
from inference.fleet_seeding import apply_fleet
from inference.models import Replica
from inference.testing.settings import TwinSettings
from tests.accounts.factories import make_tier
from tests.conversations.ledger.mishaps import SITE
from tests.running_site import RunningSite, running_site

_PERMITS = 3


@contextmanager
def busy_site(log: Path) -> Iterator[RunningSite]:
    """Two workers, and a model server that is given three answers at a time."""
    twin = TwinSettings(token_ms=2, prefill_ms=20, max_input_tokens=9_000, max_total_tokens=10_000)
    wishes = {"MAX_ANSWER_TOKENS": "300", "GRACE_SECONDS": "1", "LEASE_SECONDS": "2", "QUEUE_DEADLINE_SECONDS": "8"}
    with running_site(twin_settings=twin, log=log, PGAPPNAME=SITE, **wishes) as site:
        site.start_worker()
        yield site


def prepare(site: RunningSite) -> None:
    """Write what a test that empties the database has taken away."""
    site.twin.reset()
    apply_fleet(f"small={site.twin.url}")
    Replica.objects.update(permits=_PERMITS)


def make_tiers() -> list[str]:
    """Return two: with room for a day like this, and with a little that is kept for the model alone."""
    wide, narrow = make_tier(requests=100), make_tier(requests=50)
    Tier.objects.filter(pk=wide.pk).update(tokens_per_day=25_000, concurrent_generations=5)
    Tier.objects.filter(pk=narrow.pk).update(concurrent_generations=3, tokens_per_minute=20_000)
    ModelLimit.objects.create(tier=narrow, model="small", requests_per_window=30, tokens_per_day=8_000)
    return [wide.pk, narrow.pk]
