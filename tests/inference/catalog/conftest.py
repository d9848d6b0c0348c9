"""The tables as a fleet's text makes them."""

import pytest

from inference.fleet_seeding import apply_fleet
from inference.models import ModelAlias, ModelVersion, SeededFleet

FLEET = "small=http://a:1,http://b:2;large=http://c:3"


@pytest.fixture(autouse=True)
def _empty_tables(db):
    """Also where a running site has left its fleet in the database."""
    ModelAlias.objects.all().delete()
    ModelVersion.objects.all().delete()
    SeededFleet.objects.all().delete()


@pytest.fixture
def fleet():
    apply_fleet(FLEET)
