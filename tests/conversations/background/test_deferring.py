"""An answer's end is told to Celery, and a broker that is away or hangs holds up nothing."""

import json
import socket
import time

import pytest
from celery import Celery
from django.conf import settings
from structlog.testing import capture_logs

from conversations.services.deferring import LOOK_AFTER, SETTLE, Deferring
from foundation.ids import new_id
from tests.inference.core.waiting import until

QUEUE = f"{settings.CELERY_BROKER_TRANSPORT_OPTIONS['global_keyprefix']}celery"


@pytest.fixture
def silent_broker():
    """Takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Celery(broker=f"redis://127.0.0.1:{server.getsockname()[1]}/0")


@pytest.fixture
def absent_broker():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return Celery(broker=f"redis://127.0.0.1:{port}/0")


def sent(sync_client, identifiers):
    """Return what was sent of these, in order; a site of other tests may send too."""
    headers = [json.loads(each)["headers"] for each in reversed(sync_client.lrange(QUEUE, 0, -1))]
    tasks = [(each["task"], each["argsrepr"]) for each in headers]
    return [(task, each) for task, arguments in tasks for each in identifiers if str(each) in arguments]


async def test_tasks_are_sent_in_their_order(sync_client):
    ended, written = new_id(), new_id()
    with Deferring() as deferring:
        await deferring.look_after(ended)
        await deferring.settle(written)
        await until(lambda: len(sent(sync_client, [ended, written])) == 2)
    assert sent(sync_client, [ended, written]) == [(LOOK_AFTER, ended), (SETTLE, written)]


async def test_what_waits_when_the_work_ends_is_still_sent(sync_client):
    identifiers = [new_id() for _ in range(20)]
    with Deferring() as deferring:
        for each in identifiers:
            await deferring.settle(each)
    assert len(sent(sync_client, identifiers)) == 20


async def test_a_broker_that_is_away_is_not_tried_for_each_task(absent_broker):
    with capture_logs() as logs, Deferring(absent_broker) as deferring:
        for _ in range(50):
            await deferring.look_after(new_id())
    assert [each["event"] for each in logs] == ["task_not_sent"]


async def test_a_broker_that_hangs_holds_up_neither_the_loop_nor_the_end(silent_broker):
    began = time.monotonic()
    with capture_logs() as logs, Deferring(silent_broker) as deferring:
        for _ in range(2000):
            await deferring.look_after(new_id())
    assert time.monotonic() - began < 10
    assert {each["event"] for each in logs} == {"task_dropped"}
