"""The fleet at the command line."""

import json

import pytest
from django.core.management import CommandError, call_command

from inference.models import ModelVersion, Replica, VersionWeight
from tests.inference.fleet.reports import report


@pytest.fixture
def printed(capsys):
    def run(*arguments: str) -> str:
        call_command(*arguments)
        return capsys.readouterr().out

    return run


@pytest.mark.usefixtures("fleet")
class TestShowFleet:
    def test_a_line_for_each_server(self, printed):
        ModelVersion.objects.filter(name="large").update(model_id="Org/Large", revision="abc")
        report(
            "http://a:1",
            is_healthy=True,
            state="healthy",
            in_flight=4,
            permits=24,
            version="3.3.5",
            tokens_per_second=99.6,
        )
        report("http://c:3", is_healthy=False, state="refused", why="It serves Org/Other.")
        head, first, second, third = printed("show_fleet").splitlines()
        assert head.split()[:4] == ["MODEL", "VERSION", "SHARE", "REPLICA"]
        assert first.split() == [
            *["small", "(default)", "small", "100%", "http://a:1", "healthy", "4/24"],
            *["0", "100", "3.3.5", "-"],
        ]
        assert second.split()[4:7] == ["http://b:2", "unknown", "-/-"]
        assert "large [Org/Large at abc]" in third
        assert third.endswith("It serves Org/Other.")

    def test_shares_and_what_has_no_server(self, printed):
        canary = ModelVersion.objects.create(name="next")
        VersionWeight.objects.create(alias_id=VersionWeight.objects.get(version__name="large").alias_id, version=canary)
        assert "next     50%    -           no replica" in printed("show_fleet")

    def test_for_a_program(self, printed):
        report("http://c:3", is_healthy=True, state="healthy", model_id="Org/Large", seen_at=1_800_000_000.0)
        small, large = json.loads(printed("show_fleet", "--json"))
        assert (small["name"], small["is_default"], large["is_default"]) == ("small", True, False)
        [version] = large["versions"]
        [replica] = version["replicas"]
        assert (replica["url"], replica["state"], replica["served"]) == ("http://c:3", "healthy", "Org/Large")
        assert replica["seen_at"] == "2027-01-15T08:00:00+00:00"


def test_without_rows_the_settings_fleet_is_shown(printed, settings):
    settings.MODEL_FLEET = "tiny=http://t:1"
    assert "tiny (default)  tiny     100%   http://t:1" in printed("show_fleet")


@pytest.mark.usefixtures("fleet")
class TestDrainReplica:
    def test_a_server_is_drained_for_all_that_it_serves_and_put_back(self, printed):
        Replica.objects.create(version=ModelVersion.objects.get(name="large"), url="http://a:1")
        assert printed("drain_replica", "http://a:1/") == "http://a:1 (small, large) is draining.\n"
        assert {row.url for row in Replica.objects.filter(is_draining=True)} == {"http://a:1"}
        assert Replica.objects.filter(is_draining=True).count() == 2
        assert printed("drain_replica", "http://a:1", "--undo") == "http://a:1 (small, large) gets requests again.\n"
        assert not Replica.objects.filter(is_draining=True).exists()

    def test_an_unknown_address_is_answered_with_those_known(self):
        with pytest.raises(CommandError, match=r"http://x.*: http://a:1, http://b:2, http://c:3\.") as ended:
            call_command("drain_replica", "http://x")
        assert ended.value.returncode == 1


def test_where_the_catalogue_is_empty_the_command_says_so():
    with pytest.raises(CommandError, match="seed_fleet"):
        call_command("drain_replica", "http://x")
