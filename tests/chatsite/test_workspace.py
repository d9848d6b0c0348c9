"""The data directory's keeper."""

import os
import socket
import subprocess
import sys

import pytest

from chatsite.supervisor.errors import StartError
from chatsite.supervisor.postgresql import Cluster, clear_stale_lock, create
from chatsite.supervisor.probes import free_ports, require_free_port
from chatsite.supervisor.workspace import open_workspace

HOLDER = """
import sys
from pathlib import Path
from chatsite.supervisor.workspace import open_workspace
with open_workspace(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.stdin.close()


def test_a_second_run_on_the_same_data_says_who_uses_it(tmp_path, holder):
    with (
        pytest.raises(StartError, match=rf"Another run \(process {holder.pid}\) uses .* already"),
        open_workspace(tmp_path),
    ):
        pass


def test_the_data_can_be_used_again_after_a_kill(tmp_path, holder):
    holder.kill()
    holder.wait()
    with open_workspace(tmp_path) as workspace:
        assert workspace.data == tmp_path


def test_a_directory_that_cannot_be_made_is_told_with_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StartError, match=r"cannot be written: .* Set DATA_DIR to another directory"),
        open_workspace(tmp_path / "file" / "data"),
    ):
        pass


def test_sockets_lie_in_a_private_directory_with_a_short_name_however_long_the_data_directory_is(tmp_path):
    with open_workspace(tmp_path / ("x" * 100) / ("y" * 100)) as workspace:
        assert len(str(workspace.sockets / ".s.PGSQL.5432")) < 107
        assert workspace.sockets.stat().st_mode & 0o777 == 0o700
    assert not workspace.sockets.exists()


def test_a_port_in_use_is_told_with_a_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            StartError, match=f"Port {port} of 127.0.0.1 cannot be used: Address already in use. Set PORT"
        ):
            require_free_port("127.0.0.1", port)


def test_ports_that_somebody_listens_on_are_passed_over():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port not in free_ports(port, 2)


def test_the_lock_file_of_a_dead_postgresql_is_left_to_postgresql(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    lock = tmp_path / "postmaster.pid"
    lock.write_text(f"{gone.pid}\n{tmp_path}\n")
    clear_stale_lock(Cluster(data=tmp_path, sockets=tmp_path))
    assert lock.exists()


def test_what_an_interrupted_first_start_left_is_made_anew(tmp_path):
    cluster = Cluster(data=tmp_path / "postgresql", sockets=tmp_path)
    (tmp_path / "postgresql.new").mkdir()
    (tmp_path / "postgresql.new" / "PG_VERSION").write_text("18\n")
    create(cluster, durable=False)
    assert (cluster.data / "global" / "pg_control").exists()
    assert not (tmp_path / "postgresql.new").exists()


def test_the_lock_file_of_a_postgresql_whose_number_is_anothers_now_is_removed(tmp_path):
    lock = tmp_path / "postmaster.pid"
    lock.write_text(f"{os.getpid()}\n{tmp_path}\n")
    clear_stale_lock(Cluster(data=tmp_path, sockets=tmp_path))
    assert not lock.exists()
