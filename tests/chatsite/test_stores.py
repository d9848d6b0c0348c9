"""The stores that every other test stands on."""

import pytest
from django.core.cache import cache
from django.db import connection

from accounts.models.tier import Tier
from foundation.database import in_database


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", [1, 2])
def test_the_seeded_tiers_are_there_after_a_test_that_empties_the_tables(turn):
    assert set(Tier.objects.values_list("name", flat=True)) == {"free", "plus", "enterprise"}


@pytest.mark.parametrize("turn", [1, 2])
def test_a_test_finds_nothing_of_another_in_redis(turn):
    assert cache.get("left-behind") is None
    cache.set("left-behind", turn)


@pytest.mark.django_db(transaction=True)
async def test_a_connection_that_a_database_thread_keeps_sees_the_same_rows():
    # It stays open in its thread after the test; the end of the run then still drops the database.
    await in_database(Tier.objects.filter(name="free").update, window_seconds=7)
    assert await in_database(Tier.objects.filter(window_seconds=7).count) == 1


@pytest.mark.django_db
def test_the_database_sorts_and_folds_letters_beyond_ascii():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT lower('ÄÖÉЖ'), pg_encoding_to_char(encoding) FROM pg_database WHERE datname = %s",
            [connection.settings_dict["NAME"]],
        )
        assert cursor.fetchone() == ("äöéж", "UTF8")
