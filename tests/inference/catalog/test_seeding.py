"""What the settings name comes into the tables as a difference; what staff did there stays."""

from threading import Barrier, Thread

import pytest
from django.core.management import call_command
from django.db import connection

from inference.exceptions import InvalidFleet
from inference.fleet_seeding import apply_fleet, seed_fleet
from inference.models import ModelAlias, ModelVersion, Replica, SeededFleet, VersionWeight
from inference.stored_catalog import read_catalog


def stored() -> dict[str, list[str]]:
    catalog = read_catalog()
    return {model.alias: [replica.url for replica in model.replicas] for model in catalog.models} if catalog else {}


def test_the_first_text_fills_the_tables_in_its_order():
    apply_fleet("small=http://a:1,openai+http://b:2/v1;large=http://c:3", "large")
    assert stored() == {"small": ["http://a:1", "http://b:2/v1"], "large": ["http://c:3"]}
    assert Replica.objects.get(url="http://b:2/v1").kind == "openai"
    assert read_catalog().default_alias == "large"


@pytest.mark.usefixtures("fleet")
class TestADifference:
    def test_what_is_named_anew_comes(self):
        apply_fleet("small=http://a:1,http://b:2,http://d:4;large=http://c:3;huge=http://e:5")
        assert stored() == {
            "small": ["http://a:1", "http://b:2", "http://d:4"],
            "large": ["http://c:3"],
            "huge": ["http://e:5"],
        }

    def test_what_is_named_no_more_goes(self):
        apply_fleet("small=http://b:2")
        assert stored() == {"small": ["http://b:2"]}
        assert [version.name for version in ModelVersion.objects.all()] == ["small"]

    def test_a_server_that_moved_leaves_no_dead_replica_and_keeps_what_staff_set(self):
        ModelVersion.objects.filter(name="large").update(revision="abc")
        apply_fleet("small=http://a:1,http://b:2;large=http://c:4")
        assert stored()["large"] == ["http://c:4"]
        assert read_catalog().find("large").versions[0].revision == "abc"

    def test_the_same_text_again_changes_nothing(self):
        Replica.objects.get(url="http://b:2").delete()
        Replica.objects.filter(url="http://a:1").update(permits=7)
        assert apply_fleet("small=http://a:1,http://b:2;large=http://c:3") == []
        assert stored()["small"] == ["http://a:1"]
        assert Replica.objects.get(url="http://a:1").permits == 7

    def test_what_staff_took_away_does_not_come_back_with_another_text(self):
        Replica.objects.get(url="http://b:2").delete()
        apply_fleet("small=http://a:1,http://b:2,http://d:4;large=http://c:3")
        assert stored()["small"] == ["http://a:1", "http://d:4"]

    def test_what_staff_made_stays_when_its_model_is_named_no_more(self):
        canary = ModelVersion.objects.create(name="large-next")
        Replica.objects.create(version=canary, url="http://n:1")
        VersionWeight.objects.create(alias=ModelAlias.objects.get(name="large"), version=canary, weight=5)
        apply_fleet("small=http://a:1,http://b:2")
        assert stored()["large"] == ["http://n:1"]

    def test_a_replica_that_staff_added_stays_with_its_version(self):
        Replica.objects.create(version=ModelVersion.objects.get(name="large"), url="http://n:1")
        apply_fleet("small=http://a:1,http://b:2")
        assert stored()["large"] == ["http://n:1"]

    def test_a_renamed_version_goes_on_getting_its_replicas(self):
        ModelVersion.objects.filter(name="large").update(name="Qwen-8B")
        apply_fleet("small=http://a:1,http://b:2;large=http://d:4")
        assert stored()["large"] == ["http://d:4"]
        assert {version.name for version in ModelVersion.objects.all()} == {"small", "Qwen-8B"}

    def test_a_server_of_another_protocol_is_asked_in_it(self):
        apply_fleet("small=http://a:1,http://b:2;large=openai+http://c:3")
        assert [replica.kind for replica in Replica.objects.filter(url="http://c:3")] == ["openai"]

    def test_the_default_follows_the_settings_until_staff_choose_one(self):
        apply_fleet("small=http://a:1,http://b:2;large=http://c:3", "large")
        assert read_catalog().default_alias == "large"
        ModelAlias.objects.get(name="small").make_default()
        apply_fleet("small=http://a:1;large=http://c:3", "large")
        assert read_catalog().default_alias == "small"

    def test_a_faulty_text_leaves_all_as_it_was(self):
        with pytest.raises(InvalidFleet, match="'nonsense'"):
            apply_fleet("small=http://x:1;nonsense")
        assert stored()["small"] == ["http://a:1", "http://b:2"]


def test_settings_that_name_no_fleet_bring_nothing(settings):
    settings.HAS_MODEL_FLEET = False
    assert seed_fleet() == []
    assert not ModelAlias.objects.exists()


def test_the_command_says_what_it_did(settings, capsys):
    settings.HAS_MODEL_FLEET, settings.MODEL_FLEET = True, "small=http://a:1"
    call_command("seed_fleet")
    assert capsys.readouterr().out == "small: http://a:1 is there\nsmall is the default\n"
    call_command("seed_fleet")
    assert capsys.readouterr().out == ""


def test_the_command_names_the_faulty_part(settings, capsys):
    settings.HAS_MODEL_FLEET, settings.MODEL_FLEET = True, "small=ftp://a"
    with pytest.raises(SystemExit) as ended:
        call_command("seed_fleet")
    assert ended.value.code == 2
    assert "'ftp://a'" in capsys.readouterr().err


def test_of_processes_that_start_at_once_one_applies_the_text(transactional_db):
    at_once = Barrier(6)
    done = []

    def start():
        try:
            at_once.wait(10)
            done.append(apply_fleet("small=http://a:1,http://b:2;large=http://c:3"))
        finally:
            connection.close()

    threads = [Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(map(len, done)) == [0, 0, 0, 0, 0, 4]
    assert stored() == {"small": ["http://a:1", "http://b:2"], "large": ["http://c:3"]}
    assert SeededFleet.objects.count() == 1
