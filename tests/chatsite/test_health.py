"""What monitors are told."""

import asyncio
import time

import pytest
from django.test import Client, override_settings

from chatsite.celery import celery_workers_key
from chatsite.readiness import ReadinessCache, probe
from foundation.redis import connect
from inference.worker import workers_key
from tests.inference.fleet.reports import report

URL = "http://127.0.0.1:2"

pytestmark = pytest.mark.usefixtures("no_stored_fleet")


@pytest.fixture
def redis_client():
    with connect() as client:
        yield client


@pytest.fixture
def live_workers(redis_client):
    redis_client.zadd(workers_key(), {"here:1": time.time()})
    for queue in ("celery", "bulk"):
        redis_client.zadd(celery_workers_key(queue), {f"{queue}@here": time.time()})


async def probe_with_fleet(fleet):
    with override_settings(MODEL_FLEET=fleet):
        return await probe()


async def test_liveness_asks_nothing_of_anybody(async_client):
    with override_settings(MODEL_FLEET="small=http://127.0.0.1:1", REDIS_URL="redis://127.0.0.1:1/0"):
        response = await async_client.get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok\n")


async def test_the_site_is_ready_when_stores_a_worker_and_a_model_are_up(live_workers):
    report(URL)
    readiness = await probe_with_fleet(f"small={URL}")
    assert readiness.is_ready
    assert readiness.components() == {
        "database": True,
        "redis": True,
        "worker": True,
        "celery": True,
        "bulk": True,
        "small/1": True,
    }


async def test_one_model_that_answers_is_enough_and_the_other_is_named_as_down(live_workers):
    report(URL)
    report("http://127.0.0.1:1", is_healthy=False)
    readiness = await probe_with_fleet(f"large=http://127.0.0.1:1;small=http://127.0.0.1:1,{URL}")
    assert readiness.is_ready
    assert readiness.replicas == {"large/1": False, "small/1": False, "small/2": True}


async def test_a_worker_that_has_been_silent_for_six_seconds_does_not_count(redis_client):
    redis_client.zadd(workers_key(), {"here:1": time.time() - 6})
    report(URL)
    readiness = await probe_with_fleet(f"small={URL}")
    assert not readiness.worker
    assert not readiness.is_ready


async def test_background_work_is_not_needed_to_be_ready(redis_client):
    redis_client.zadd(workers_key(), {"here:1": time.time()})
    report(URL)
    readiness = await probe_with_fleet(f"small={URL}")
    assert not readiness.celery
    assert readiness.is_ready


async def test_without_redis_the_rest_is_still_told():
    with override_settings(REDIS_URL="redis://127.0.0.1:1/0"):
        readiness = await probe_with_fleet("small=http://127.0.0.1:1")
    assert readiness.components() == {
        "database": True,
        "redis": False,
        "worker": False,
        "celery": False,
        "bulk": False,
        "small/1": False,
    }


async def test_a_model_server_of_which_no_worker_tells_is_down(live_workers):
    readiness = await probe_with_fleet(f"small={URL}")
    assert readiness.replicas == {"small/1": False}
    assert not readiness.is_ready


async def test_callers_at_the_same_time_share_one_probe():
    cache = ReadinessCache(keep_seconds=60)
    first, second = await asyncio.gather(cache.get(), cache.get())
    assert first is second
    assert await cache.get() is first


async def test_readiness_names_components_but_no_addresses(async_client):
    with override_settings(MODEL_FLEET="small=http://127.0.0.1:1"):
        response = await async_client.get("/readyz")
    assert response.status_code == 503
    body = response.json()
    assert body["status"] == "not_ready"
    assert body["components"]["database"] == {"status": "up"}
    assert body["components"]["worker"] == {"status": "down"}
    assert "127.0.0.1" not in response.text


def test_numbers_are_told_to_allowed_networks_only():
    page = Client().get("/metrics", REMOTE_ADDR="127.0.0.1")
    assert page.status_code == 200
    assert b"python_info" in page.content
    assert Client().get("/metrics", REMOTE_ADDR="192.0.2.7").status_code == 404
    with override_settings(METRICS_NETWORKS=["192.0.2.0/24"]):
        assert Client().get("/metrics", REMOTE_ADDR="192.0.2.7").status_code == 200


def test_numbers_are_not_told_to_whoever_comes_through_the_proxy():
    page = Client().get("/metrics", REMOTE_ADDR="127.0.0.1", headers={"X-Forwarded-For": "192.0.2.7"})
    assert page.status_code == 404
