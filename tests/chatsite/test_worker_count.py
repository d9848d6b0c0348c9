"""How many inference workers the stack has."""

import pytest

from chatsite.supervisor.plan import Plan, Wishes
from chatsite.supervisor.workspace import open_workspace
from tests.running_site import free_port


def worker_names(tmp_path, **wishes):
    given = {
        "host": "127.0.0.1",
        "port": free_port(),
        "host_header": "localhost",
        "database_url": "postgresql://nobody@127.0.0.1:1/none",
        "redis_url": "redis://127.0.0.1:1/0",
        "model_fleet": "small=http://127.0.0.1:1",
        "models": (),
    }
    with open_workspace(tmp_path / "data") as workspace:
        plan = Plan(Wishes(**given, **wishes), workspace)
        return [each.name for each in plan.servers() if "run_inference_worker" in each.command]


@pytest.mark.parametrize(("count", "names"), [(1, ["worker"]), (3, ["worker", "worker-2", "worker-3"])])
def test_there_are_as_many_workers_as_were_asked_for_each_with_a_name(tmp_path, count, names):
    assert worker_names(tmp_path, workers=count) == names
