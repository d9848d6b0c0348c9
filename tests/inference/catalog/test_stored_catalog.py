"""What a process knows of the catalogue, and how soon."""

import socket
from decimal import Decimal
from threading import Thread

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from foundation.database import in_database
from inference.catalog import Capabilities, Prices, ServerKind
from inference.exceptions import UnknownModel
from inference.fleet_seeding import CatalogFollower, apply_fleet
from inference.models import ModelAlias, ModelVersion, Replica, VersionWeight
from inference.stored_catalog import HOLD_SECONDS, current_catalog, forget_catalog, read_catalog, refresh_catalog
from tests.inference.core.waiting import until
from tests.running_site import wait_until


def aliases() -> list[str]:
    return [model.alias for model in current_catalog().models]


def test_where_the_tables_are_empty_the_settings_count(settings):
    settings.MODEL_FLEET = "tiny=http://t:1"
    assert aliases() == ["tiny"]
    settings.MODEL_FLEET = "other=http://o:1"
    assert aliases() == ["other"]


@pytest.mark.usefixtures("fleet")
class TestStored:
    def test_a_change_is_known_when_the_hold_is_over_and_nothing_is_read_before(self, django_assert_num_queries):
        assert aliases() == ["small", "large"]
        ModelAlias.objects.filter(name="large").update(name="huge")
        with django_assert_num_queries(0):
            assert aliases() == ["small", "large"]
        wait_until(lambda: aliases() == ["small", "huge"], seconds=HOLD_SECONDS * 2)

    def test_the_tables_are_read_in_four_queries_whatever_their_size(self, django_assert_num_queries):
        apply_fleet(";".join(f"m{number}=http://m{number}:1,http://n{number}:1" for number in range(20)))
        with django_assert_num_queries(4):
            assert len(read_catalog().models) == 20

    def test_all_of_a_row_is_known(self):
        ModelVersion.objects.filter(name="large").update(
            model_id="Org/Large",
            revision="abc",
            context_tokens=8192,
            max_answer_tokens=1024,
            tokenizer="Org/Tokenizer",
            price_in=Decimal("0.15"),
            price_cached=Decimal("0.05"),
            price_out=Decimal("0.6"),
            has_tools=True,
            has_reasoning=True,
        )
        Replica.objects.filter(url="http://c:3").update(kind="openai", weight=2, permits=5, is_draining=True)
        ModelAlias.objects.filter(name="large").update(fallback=ModelAlias.objects.get(name="small"))
        large = current_catalog().find("large")
        version = large.versions[0]
        assert (large.fallback, version.name, version.weight) == ("small", "large", 100)
        assert (version.model_id, version.revision, version.tokenizer) == ("Org/Large", "abc", "Org/Tokenizer")
        assert (version.context_tokens, version.max_answer_tokens) == (8192, 1024)
        assert version.prices == Prices(Decimal("0.15"), Decimal("0.05"), Decimal("0.6"))
        assert version.capabilities == Capabilities(tools=True, reasoning=True)
        replica = version.replicas[0]
        assert (replica.kind, replica.weight, replica.permits) == (ServerKind.OPENAI_COMPATIBLE, 2.0, 5)
        assert replica.is_draining

    def test_a_version_may_be_shared_and_a_share_without_weight_is_still_watched(self):
        canary = ModelVersion.objects.create(name="next")
        Replica.objects.create(version=canary, url="http://n:1")
        for alias, weight in (("small", 0), ("large", 5)):
            VersionWeight.objects.create(alias=ModelAlias.objects.get(name=alias), version=canary, weight=weight)
        found = {
            model.alias: [(version.name, version.weight) for version in model.versions]
            for model in current_catalog().models
        }
        assert found == {"small": [("small", 100), ("next", 0)], "large": [("large", 100), ("next", 5)]}

    def test_a_server_that_drains_for_one_version_drains_for_all(self):
        Replica.objects.create(version=ModelVersion.objects.get(name="large"), url="http://a:1", is_draining=True)
        draining = {replica.url: replica.is_draining for replica in current_catalog().find("small").replicas}
        assert draining == {"http://a:1": True, "http://b:2": False}

    def test_a_model_called_auto_answers_whoever_chose_none(self):
        auto = ModelAlias.objects.create(name="auto", position=9)
        VersionWeight.objects.create(alias=auto, version=ModelVersion.objects.get(name="large"))
        catalog = current_catalog()
        assert {catalog.find(wanted).alias for wanted in (None, "", "auto")} == {"auto"}
        assert catalog.find("small").alias == "small"
        with pytest.raises(UnknownModel) as refused:
            catalog.find("huge")
        assert refused.value.details == {"allowed": ["auto", "small", "large"]}

    def test_what_could_not_answer_is_not_offered(self):
        ModelAlias.objects.create(name="bare", is_default=False)
        Replica.objects.filter(version__name="small").delete()
        catalog = current_catalog()
        assert [model.alias for model in catalog.models] == ["large"]
        assert catalog.default_alias == "large", "the default has no replica"

    def test_a_row_that_came_past_every_check_takes_only_itself_away(self):
        Replica.objects.filter(url="http://a:1").update(url="http://[::1")
        assert [replica.url for replica in current_catalog().find("small").replicas] == ["http://b:2"]

    @pytest.mark.parametrize(
        ("model", "name", "wrong"),
        [
            (Replica, "url", "ftp://a"),
            (Replica, "url", "http://a/"),
            (Replica, "kind", "grpc"),
            (Replica, "weight", -1.0),
            (Replica, "weight", float("nan")),
            (Replica, "permits", 0),
            (VersionWeight, "weight", 2_000_000),
            (ModelVersion, "price_in", Decimal(-1)),
            (ModelVersion, "context_tokens", 0),
            (ModelVersion, "max_answer_tokens", 0),
            (ModelVersion, "name", ""),
            (ModelAlias, "name", ""),
            (ModelAlias, "is_default", True),
        ],
    )
    def test_the_database_itself_refuses_a_malformed_row(self, model, name, wrong):
        row = model.objects.last()
        with pytest.raises(IntegrityError), transaction.atomic():
            model.objects.filter(pk=row.pk).update(**{name: wrong})

    def test_an_alias_does_not_fall_back_on_itself(self):
        row = ModelAlias.objects.first()
        with pytest.raises(IntegrityError), transaction.atomic():
            ModelAlias.objects.filter(pk=row.pk).update(fallback=row.pk)


class Elsewhere:
    """Stands where the database was: hangs up on whoever calls, and counts them."""

    def __init__(self):
        self.calls = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = Thread(target=self._serve)
        self.thread.start()

    def _serve(self):
        while True:
            caller, _ = self.listener.accept()
            with caller:
                if caller.recv(1) == b"q":
                    return
            self.calls += 1

    def close(self):
        with socket.create_connection(self.listener.getsockname()) as last:
            last.send(b"q")
        self.thread.join(10)
        self.listener.close()


@pytest.mark.usefixtures("transactional_db")
class TestWhenTheDatabaseIsAway:
    @pytest.fixture
    def move_away(self, monkeypatch):
        elsewhere = Elsewhere()

        def move():
            connection.close()
            host, port = elsewhere.listener.getsockname()
            monkeypatch.setitem(connection.settings_dict, "HOST", host)
            monkeypatch.setitem(connection.settings_dict, "PORT", port)
            return elsewhere

        yield move
        monkeypatch.undo()
        connection.close()
        elsewhere.close()

    def test_what_was_read_last_counts_and_the_database_is_not_asked_at_every_call(self, move_away):
        apply_fleet("small=http://a:1;large=http://c:3")
        assert aliases() == ["small", "large"]
        elsewhere = move_away()
        answers = []
        wait_until(lambda: answers.append(aliases()) or elsewhere.calls, seconds=10)
        calls = elsewhere.calls
        answers += [aliases() for _ in range(20)]
        assert elsewhere.calls == calls
        assert all(answer == ["small", "large"] for answer in answers)

    def test_before_anything_was_read_the_settings_count(self, move_away, settings):
        settings.MODEL_FLEET = "tiny=http://t:1"
        move_away()
        assert aliases() == ["tiny"]

    def test_within_a_transaction_its_loss_is_told(self):
        with pytest.raises(OperationalError), transaction.atomic():  # noqa: PT012
            _lose_the_connection()
            current_catalog()
        connection.close()


def _lose_the_connection():
    with connection.cursor() as cursor, pytest.raises(OperationalError):
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.usefixtures("transactional_db")
class TestOnAnEventLoop:
    async def test_nothing_is_read_until_somebody_refreshes(self, settings):
        settings.MODEL_FLEET = "tiny=http://t:1"
        await in_database(apply_fleet, "small=http://a:1")
        assert aliases() == ["tiny"]
        await refresh_catalog()
        assert aliases() == ["small"]

    async def test_a_worker_brings_the_settings_in_as_soon_as_the_database_is_there(self, settings):
        settings.HAS_MODEL_FLEET, settings.MODEL_FLEET = True, "small=http://a:1"
        follower = CatalogFollower()
        await follower.begin()
        assert follower.is_seeded
        assert aliases() == ["small"]
        await in_database(Replica.objects.filter(url="http://a:1").update, is_draining=True)
        await follower.follow()
        await until(lambda: current_catalog().replicas()[0].is_draining)


def test_a_process_that_forgets_reads_again(fleet):
    assert aliases() == ["small", "large"]
    ModelAlias.objects.filter(name="large").delete()
    forget_catalog()
    assert aliases() == ["small"]
    assert read_catalog() == current_catalog()
