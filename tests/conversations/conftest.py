"""One running site for all tests here that need one, and clients for it."""

import aiohttp
import pytest
import pytest_asyncio

from tests.accounts.factories import make_key, make_user
from tests.api_client import ApiClient
from tests.running_site import running_site


@pytest.fixture(scope="package")
def shared_site(django_db_setup, django_db_blocker, tmp_path_factory):
    """Ends with these tests: those that come after use the queue as if nobody else did."""
    log = tmp_path_factory.mktemp("site") / "log"
    with django_db_blocker.unblock(), running_site(log=log, GRACE_SECONDS="1") as site:
        yield site


@pytest.fixture(scope="module")
def no_other_worker(shared_site):
    """For a module that has a site of its own: on the same stores, each worker would take the other's messages."""
    shared_site.stop_workers()
    yield
    shared_site.start_worker()


@pytest.fixture
def redis_store(_redis):
    """The Redis of the tests."""
    return _redis


@pytest.fixture
def site(shared_site, transactional_db):
    shared_site.twin.reset()
    return shared_site


@pytest_asyncio.fixture
async def http():
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:
        yield session


@pytest.fixture
def alice_secret(site):
    return make_key(make_user("alice@example.com", tier="enterprise"))


@pytest.fixture
def charlie_secret(site):
    return make_key(make_user("charlie@example.com"))


@pytest_asyncio.fixture
async def alice(alice_secret, http, site):
    """Owns what the tests make."""
    return ApiClient(http, site.url, alice_secret)


@pytest_asyncio.fixture
async def charlie(charlie_secret, http, site):
    """A stranger."""
    return ApiClient(http, site.url, charlie_secret)
