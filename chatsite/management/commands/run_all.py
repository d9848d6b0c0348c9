"""Runs the whole product on this machine: stores, models, pages, workers."""

import asyncio
import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from chatsite.supervisor.errors import StartError
from chatsite.supervisor.guard import Guard
from chatsite.supervisor.plan import Plan, Wishes
from chatsite.supervisor.probes import require_free_port
from chatsite.supervisor.stack import Stack
from chatsite.supervisor.terminal import Terminal
from chatsite.supervisor.workspace import open_workspace
from inference.catalog import parse_fleet
from inference.exceptions import InvalidFleet


class Command(BaseCommand):
    help = "Run everything on this machine; DATABASE_URL, REDIS_URL and MODEL_FLEET replace what they name."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            _run_stack(_wishes())
        except (StartError, ExceptionGroup) as error:
            if (reason := _start_error(error)) is None:
                raise
            sys.exit(f"Not started: {reason}")


def _run_stack(wishes: Wishes) -> None:
    with open_workspace(settings.DATA_DIR) as workspace:
        require_free_port(wishes.host, wishes.port)
        plan = Plan(wishes, workspace)
        _require_readable_fleet(plan.environment["MODEL_FLEET"])
        with Guard(workspace.lock) as guard:
            asyncio.run(Stack(plan, Terminal(sys.stdout), guard).run())


def _require_readable_fleet(fleet: str) -> None:
    try:
        parse_fleet(fleet, settings.DEFAULT_MODEL)
    except InvalidFleet as error:
        raise StartError(str(error)) from error


def _wishes() -> Wishes:
    return Wishes(
        host=settings.HOST,
        port=settings.PORT,
        host_header=next((name.removeprefix(".") for name in settings.ALLOWED_HOSTS if name != "*"), "localhost"),
        database_url=settings.EXTERNAL_ADDRESSES["DATABASE_URL"],
        redis_url=settings.EXTERNAL_ADDRESSES["REDIS_URL"],
        model_fleet=settings.EXTERNAL_ADDRESSES["MODEL_FLEET"],
        models=("small",) if settings.LITE else ("large", "small"),
        workers=settings.INFERENCE_WORKERS or _fitting_workers(),
    )


def _fitting_workers() -> int:
    """Return a worker for each core but the page's; beside models that compute on the same cores, one."""
    has_own_models = not settings.EXTERNAL_ADDRESSES["MODEL_FLEET"]
    return 1 if has_own_models else max(1, (os.cpu_count() or 1) - 1)


def _start_error(error: Exception) -> StartError | None:
    """Return the sentence for the person at the terminal, also from within the group that a task group raises."""
    if isinstance(error, StartError):
        return error
    if not isinstance(error, ExceptionGroup):
        return None
    return next((found for inner in error.exceptions if (found := _start_error(inner))), None)
