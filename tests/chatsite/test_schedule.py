"""What runs by the clock may run twice: a broker delivers again what it is not sure of."""

import pytest
from django.apps import apps
from django.conf import settings

from chatsite.celery import app
from tests.accounts.erasure.everything import fill

SCHEDULE = settings.CELERY_BEAT_SCHEDULE


@pytest.fixture
def at_once():
    """Has what a task sends on done in its place, and its failures raised."""
    before = {name: app.conf[name] for name in ("task_always_eager", "task_eager_propagates")}
    app.conf.update(task_always_eager=True, task_eager_propagates=True)
    yield
    app.conf.update(before)


def row_counts():
    return {model._meta.label: model._default_manager.count() for model in apps.get_models(include_auto_created=True)}


def test_every_name_in_the_schedule_is_a_task():
    app.loader.import_default_modules()
    assert {entry["task"] for entry in SCHEDULE.values()} <= set(app.tasks)


@pytest.mark.parametrize("name", sorted(SCHEDULE))
@pytest.mark.django_db
def test_a_second_run_neither_makes_nor_deletes_a_row(name, at_once):
    fill("canarybird")
    app.loader.import_default_modules()
    task, arguments = app.tasks[SCHEDULE[name]["task"]], SCHEDULE[name].get("args", ())
    task.apply(arguments)
    counts = row_counts()
    task.apply(arguments)
    assert row_counts() == counts
