"""What an export holds, and how it comes about."""

import csv
import io
import json
import stat
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import UsageRecord
from conversations.models import Conversation, Export, Memory, Message
from conversations.services import memories, preferences
from conversations.services.exports import asking, writing
from conversations.services.exports.file_names import file_name
from conversations.services.imports import reading
from conversations.services.transfers import files, lease, upkeep
from foundation.ids import new_id
from tests.accounts.factories import make_key, make_user
from tests.conversations.transfers.conftest import bring
from tests.conversations.transfers.test_own_imports import make_conversation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alice(transactional_db):
    return make_user("alice@example.com", name="Alice")


@pytest.fixture
def bob(transactional_db):
    return make_user("bob@example.com")


def written(user) -> Export:
    export = asking.ask_for(user)
    writing.write(export.pk)
    export.refresh_from_db()
    return export


def opened(export) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(files.path_of(files.EXPORTS, export.file).read_bytes()))


def document(export, name):
    return json.loads(opened(export).read(name))


def test_an_export_holds_all_that_a_user_has_and_nothing_of_anybody_else(alice, bob):
    make_conversation(alice)
    make_conversation(bob, model="of-bob")
    memories.create(user=alice, content="I am vegan.")
    preferences.change(user=alice, changes={"instructions": "Be brief."})
    secret = make_key(alice, name="my script")
    UsageRecord.objects.create(
        generation_id=new_id(), user=alice, model="small", tokens_in=5, tokens_out=2, cost=Decimal("0.000012000001")
    )
    export = written(alice)
    assert export.status == "done"
    archive = opened(export)
    assert archive.testzip() is None
    assert set(archive.namelist()) == {
        "conversations.json",
        "conversations/00001 Tea.md",
        "memories.json",
        "preferences.json",
        "usage.json",
        "usage.csv",
        "account.json",
        "api_keys.json",
        "invoices.json",
        "README.md",
    }
    assert len(document(export, "conversations.json")["conversations"]) == 1
    assert [each["content"] for each in document(export, "memories.json")] == ["I am vegan."]
    assert document(export, "preferences.json")["instructions"] == "Be brief."
    assert Decimal(document(export, "usage.json")[0]["cost"]) == Decimal("0.000012000001")
    rows = list(csv.DictReader(io.StringIO(archive.read("usage.csv").decode())))
    assert [(row["model"], row["tokens_in"]) for row in rows] == [("small", "5")]
    assert document(export, "account.json")["email"] == "alice@example.com"
    assert document(export, "api_keys.json")[0]["name"] == "my script"
    assert document(export, "invoices.json") == []
    everything = b"".join(archive.read(name) for name in archive.namelist())
    assert secret.encode() not in everything
    assert alice.password.encode() not in everything
    assert b"of-bob" not in everything


@pytest.mark.parametrize("cost", ["0", "0.0000001", "0.000000000001", "12.5", "30"])
def test_what_an_answer_cost_is_written_out_in_full(alice, cost):
    spent = {"tokens_in": 5, "tokens_out": 2, "cost": Decimal(cost)}
    UsageRecord.objects.create(generation_id=new_id(), user=alice, model="small", **spent)
    export = written(alice)
    assert document(export, "usage.json")[0]["cost"] == cost
    table = opened(export).read("usage.csv").decode()
    assert [row["cost"] for row in csv.DictReader(io.StringIO(table))] == [cost]


def test_the_page_of_a_conversation_has_the_shown_branch(alice):
    make_conversation(alice)
    page = opened(written(alice)).read("conversations/00001 Tea.md").decode()
    assert page.startswith("# Tea\n")
    assert "Which tea?" in page
    assert "Green." in page
    assert "Black." not in page


def test_temporary_conversations_and_deleted_memories_are_left_out(alice):
    Conversation.objects.create(user=alice, title="Hush", temporary=True)
    kept = memories.create(user=alice, content="I am vegan.").memory
    assert document(written(alice), "memories.json")
    memories.delete(user=alice, memory_id=kept.pk)
    export = written(alice)
    assert document(export, "memories.json") == []
    assert document(export, "conversations.json")["conversations"] == []


def test_the_zip_is_read_back_by_an_import(alice, bob):
    make_conversation(alice)
    export = written(alice)
    assert bring(bob, files.path_of(files.EXPORTS, export.file).read_bytes()).report["imported"] == 1
    assert Conversation.objects.get(user=bob).title == "Tea"


def test_a_second_request_returns_the_export_that_is_under_way(alice, bob):
    first = asking.ask_for(alice)
    assert asking.ask_for(alice) == first
    assert asking.ask_for(bob) != first
    writing.write(first.pk)
    assert asking.ask_for(alice) != first


def test_an_export_is_written_once_though_its_task_runs_twice(alice):
    export = written(alice)
    writing.write(export.pk)
    assert Export.objects.get().file == export.file
    assert len(list(files.path_of(files.EXPORTS, "x").parent.iterdir())) == 1


def test_the_file_is_readable_to_the_site_alone(alice):
    path = files.path_of(files.EXPORTS, written(alice).file)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_killed_workers_export_is_taken_up_again_once_its_lease_is_over(alice):
    export = asking.ask_for(alice)
    lease.take(Export, export.pk)
    writing.write(export.pk)
    assert Export.objects.get().status == "running"
    Export.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert upkeep.give_up_or_find_forsaken().exports == [export.pk]
    writing.write(export.pk)
    assert Export.objects.get().status == "done"


def test_an_export_that_fails_is_tried_again_and_then_given_up_with_a_sentence(alice, data_directory):
    export = asking.ask_for(alice)
    data_directory.mkdir()
    (data_directory / "exports").write_text("not a folder")
    for attempt in range(1, lease.MOST_ATTEMPTS + 1):
        writing.write(export.pk)
        export.refresh_from_db()
        assert export.attempts == attempt
        Export.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert (export.status, export.error_message[-1]) == ("failed", ".")
    assert upkeep.give_up_or_find_forsaken().exports == []


def test_an_export_whose_workers_all_died_is_given_up(alice):
    export = asking.ask_for(alice)
    Export.objects.update(status="running", attempts=lease.MOST_ATTEMPTS, lease_expires_at=timezone.now())
    assert upkeep.give_up_or_find_forsaken().exports == []
    export.refresh_from_db()
    assert export.status == "failed"


def test_a_writer_that_has_lost_its_export_leaves_no_file(alice):
    export = lease.take(Export, asking.ask_for(alice).pk)
    name = files.new_name(".zip")
    writing._write_file(export, name)
    Export.objects.all().delete()
    writing._finish(export, name)
    assert not files.path_of(files.EXPORTS, name).exists()


def test_an_expired_export_and_its_file_are_deleted(alice):
    export = written(alice)
    Export.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert asking.exports_of(alice.pk).items == []
    assert upkeep.delete_what_is_over() == 1
    assert upkeep.delete_what_is_over() == 0
    assert not files.path_of(files.EXPORTS, export.file).exists()


def test_only_the_newest_files_are_kept(alice):
    exports = [written(alice) for _ in range(writing.MOST_KEPT + 1)]
    assert asking.exports_of(alice.pk).items == exports[:0:-1]
    assert not files.path_of(files.EXPORTS, exports[0].file).exists()


def test_erasing_deletes_exports_and_imports_with_their_files_and_can_be_repeated(alice, bob):
    theirs, others = written(alice), written(bob)
    bring(alice, [])
    assert writing.erase(alice.pk) == 1
    assert reading.erase(alice.pk) == 1
    assert (writing.erase(alice.pk), reading.erase(alice.pk)) == (0, 0)
    assert not files.path_of(files.EXPORTS, theirs.file).exists()
    assert files.path_of(files.EXPORTS, others.file).exists()


def test_all_is_read_from_one_snapshot(alice):
    conversation = make_conversation(alice)
    export = lease.take(Export, asking.ask_for(alice).pk)
    pieces = []

    def remember_later() -> None:
        """Runs while the archive is written, after its first part."""
        if not pieces:
            pieces.append(_in_another_connection(alice, conversation))

    name = files.new_name(".zip")
    _write_with(export, name, remember_later)
    export.file = name
    assert document(export, "memories.json") == []
    assert Memory.objects.count() == 1


def _in_another_connection(user, conversation) -> int:
    def write() -> int:
        try:
            Memory.objects.create(user=user, content="Later.", origin="written", conversation=conversation)
            return Message.objects.count()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(write).result()


def _write_with(export, name, keep_lease) -> None:
    with files.new_file(files.EXPORTS, name) as file, writing.snapshot():
        writing.write_archive(file, export.user, keep_lease=keep_lease)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Tea in Ghent", "00007 Tea in Ghent.md"),
        ("../../etc/passwd", "00007 etc passwd.md"),
        ("a\x00b\nc", "00007 a�b c.md"),
        ("茶について", "00007 茶について.md"),
        ("شاي", "00007 شاي.md"),
        ("\u202egnp.exe", "00007 gnp.exe.md"),
        ('CON: <x>|"y"?*', "00007 CON x y.md"),
        ("...", "00007.md"),
        ("", "00007.md"),
    ],
)
def test_titles_in_any_script_become_names_that_any_system_can_keep(title, name):
    assert file_name(7, title) == name


def test_names_of_very_long_titles_stay_short():
    for title in ("x" * 500, "茶" * 500, "👨‍👩‍👧‍👦" * 100):
        assert len(file_name(1, title).encode()) < 200
