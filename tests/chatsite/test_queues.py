"""Which background work waits for which: what may take minutes has workers of its own."""

import pytest
from django.conf import settings

from chatsite.celery import app
from tests.own_processes import ROOT

LONG = {
    "accounts.tasks.end_erasure",
    "accounts.tasks.erase_from_store",
    "conversations.tasks.read_import",
    "conversations.tasks.write_export",
}


def queue_of(task: str) -> str:
    return app.amqp.router.route({}, task)["queue"].name


def test_exports_imports_and_erasures_hold_up_nothing_else():
    app.loader.import_default_modules()
    ours = {name for name in app.tasks if not name.startswith("celery.")}
    assert ours > LONG
    assert {name for name in ours if queue_of(name) == settings.BULK_QUEUE} == LONG
    assert {queue_of(name) for name in ours - LONG} == {settings.CELERY_TASK_DEFAULT_QUEUE}


@pytest.mark.parametrize("name", ["Procfile", "compose.yaml"])
def test_every_deployment_has_workers_for_both_queues(name):
    workers = [line for line in (ROOT / name).read_text().splitlines() if "chatsite worker" in line]
    assert sorted("--queues=bulk" in line for line in workers) == [False, True]
