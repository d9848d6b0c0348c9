"""What every test can rely on: clean stores, fast passwords, a fresh cache of nothing."""

from importlib import import_module

import pytest
import redis
from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.models.signals import post_migrate

from accounts.quotas.rules import forget_own_limits
from conversations.models_on_offer import forget_reports
from inference import lua
from inference.models import ModelAlias, ModelVersion, SeededFleet
from inference.stored_catalog import forget_catalog


def pytest_configure() -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # Nothing is collected in a test run, and WhiteNoise warns of the missing folder unless it looks files up as asked.
    settings.WHITENOISE_AUTOREFRESH = True
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }


def _seed(**_kwargs) -> None:
    import_module("accounts.migrations.0002_seed_tiers").seed(apps, None)
    import_module("accounts.migrations.0006_tier_limits").limit(apps, None)
    import_module("accounts.migrations.0011_staff_groups").seed(apps, None)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """The test database; after the last test, connections that threads left open do not keep it from being dropped."""
    # A test with `transaction=True` empties every table at its end, the seeded ones too; the flush sends this signal.
    post_migrate.connect(_seed, sender=apps.get_app_config("accounts"))
    yield
    post_migrate.disconnect(_seed, sender=apps.get_app_config("accounts"))
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture(scope="session")
def _redis():
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        yield client
        _forget_all(client)


@pytest.fixture(autouse=True)
def _nothing_known_of_the_fleet():
    forget_catalog()
    forget_reports()


@pytest.fixture(autouse=True)
def _nothing_known_of_the_tiers():
    forget_own_limits()


@pytest.fixture
def no_stored_fleet(transactional_db):
    """The fleet of the settings: no row of a site that ran before is in its way."""
    ModelAlias.objects.all().delete()
    ModelVersion.objects.all().delete()
    SeededFleet.objects.all().delete()


@pytest.fixture(autouse=True)
def _empty_redis(_redis):
    _forget_all(_redis)
    # As if it had been empty for long: no permits are held that workers have yet to renew.
    _redis.set(f"{lua.base_key()}:gives_permits_from", 0)


def _forget_all(client: redis.Redis) -> None:
    # By prefix, not FLUSHDB: the store may be one that somebody else uses.
    names = list(client.scan_iter(match=f"{settings.REDIS_KEY_PREFIX}*", count=1000))
    if names:
        client.unlink(*names)
