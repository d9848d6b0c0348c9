"""Files that are no exports, damaged ones, and such as were made to do harm."""

import io
import json
import subprocess
import sys
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from conversations.exceptions import ContentTooLong, InvalidRequest, TransferInProgress
from conversations.models import Conversation, Import, Message
from conversations.services.imports import containers, reading, uploads
from conversations.services.transfers import files
from tests.conversations.transfers.chatgpt_export import chain, conversation, node
from tests.conversations.transfers.conftest import bring


def zipped(entries: dict[str, bytes | str], compression=zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


ONE = json.dumps([chain(2)])


@pytest.mark.parametrize("name", ["conversations.json", "export/conversations.json", "conversations-000.json"])
def test_the_conversations_of_a_zip_are_imported(alice, name):
    assert bring(alice, zipped({"chat.html": "<p>", name: ONE, "user.json": "{}"})).report["imported"] == 1


def test_a_zip_in_several_pieces_is_read_whole(alice):
    pieces = {f"conversations-{n:03}.json": json.dumps([chain(2, conversation_id=f"c{n}")]) for n in range(3)}
    assert bring(alice, zipped(pieces)).report["imported"] == 3


@pytest.mark.parametrize(
    "name", ["../conversations.json", "/conversations.json", "a/b/conversations.json", "..\\conversations.json"]
)
def test_names_that_lead_elsewhere_are_not_followed(alice, name, tmp_path):
    brought = bring(alice, zipped({name: ONE}))
    is_one_folder = name == "../conversations.json"
    assert brought.status == ("done" if is_one_folder else "failed")
    assert not list(tmp_path.rglob("conversations.json"))


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[",
        b"nonsense",
        b"5",
        b'"text"',
        b"null",
        b"{}",
        b'{"a": 1}',
        b"[NaN]",
        b"[1] [2]",
        b"\xff\xfe[\x00]\x00",
        b'["\xff"]',
        b"PK",
        b"PK\x03\x04 and no more",
        b"PK\x05\x06" + b"\0" * 18,
        b"\x1f\x8b gzip",
        b"<html>",
        zipped({"conversations.json": "{"}),
        zipped({"other.json": "[]"}),
        zipped({"conversations.json": ONE})[:-30],
        zipped({"conversations.json": ONE}, zipfile.ZIP_BZIP2),
        b"[" * 100_000,
        b"[" + b"9" * 6_000,
    ],
    ids=lambda content: repr(content[:20]),
)
def test_a_file_that_cannot_be_read_is_refused_with_a_sentence(alice, content):
    brought = bring(alice, content)
    assert brought.status == "failed"
    assert brought.report["error"].endswith(".")
    assert not Conversation.objects.exists()


def test_of_a_file_that_breaks_off_nothing_is_imported(alice):
    whole = json.dumps([chain(2, conversation_id=f"c{number}") for number in range(50)]).encode()
    brought = bring(alice, whole[:-1000])
    assert (brought.status, brought.report["imported"]) == ("failed", 0)
    assert not Conversation.objects.exists()


def test_a_zip_whose_content_was_changed_is_refused(alice):
    raw = bytearray(zipped({"conversations.json": ONE}, zipfile.ZIP_STORED))
    at = raw.index(b"Message 0")
    raw[at : at + 7] = b"Massage"
    brought = bring(alice, bytes(raw))
    assert (brought.status, Message.objects.count()) == ("failed", 0)
    assert "damaged" in brought.report["error"]


def test_an_encrypted_zip_is_refused(alice):
    raw = bytearray(zipped({"conversations.json": ONE}))
    raw[raw.index(b"PK\x03\x04") + 6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    assert "encrypted" in bring(alice, bytes(raw)).report["error"]


def test_a_zip_that_unpacks_to_very_much_is_not_unpacked(alice):
    brought = bring(alice, zipped({"conversations.json": b"[" + b" " * 60_000_000 + b"]"}))
    assert "far larger" in brought.report["error"]


def test_a_zip_that_lies_about_its_size_is_refused(alice):
    raw = zipped({"conversations.json": b"[" + b" " * 60_000_000 + b"]"})
    small = raw.replace((60_000_002).to_bytes(4, "little"), (1_000).to_bytes(4, "little"))
    assert small != raw
    assert bring(alice, small).status == "failed"


def test_a_zip_with_a_very_long_list_of_contents_is_refused(alice, monkeypatch):
    monkeypatch.setattr(containers, "_MOST_DIRECTORY_BYTES", 10_000)
    assert bring(alice, zipped({f"{n:0100}": b"" for n in range(100)})).status == "failed"


def test_a_text_that_would_fill_the_memory_is_refused(alice):
    assert "more than 4 MB" in bring(alice, b'["' + b'\\"' * 2_500_000 + b'"]').report["error"]


@pytest.mark.parametrize("opened", ['{"a":', "["])
def test_values_nested_very_deeply_refuse_their_conversation_and_no_other(alice, opened):
    closed = "}" if opened.startswith("{") else "]"
    nested = opened * 100_000 + ("1" if closed == "}" else "") + closed * 100_000
    text = f'[{{"title": "deep", "mapping": {{"a": {nested}}}}}, {json.dumps(chain(2))}]'
    brought = bring(alice, text.encode())
    assert brought.outcomes == [("refused", "Its values are nested too deeply."), ("imported", None)]


def test_a_name_that_comes_twice_refuses_the_conversation(alice):
    text = ONE.replace('"title"', '"mapping"', 1)
    assert bring(alice, text.encode()).outcomes[0][0] == "refused"


@pytest.mark.parametrize("item", [None, 5, "x", [], [[1]], {}, {"title": "only"}, {"mapping": []}, {"mapping": {}}])
def test_what_is_no_conversation_is_refused_and_the_others_are_imported(alice, item):
    brought = bring(alice, [item, chain(2)])
    assert [outcome for outcome, _ in brought.outcomes] == ["refused", "imported"]


def test_a_byte_order_mark_is_passed_over(alice):
    assert bring(alice, b"\xef\xbb\xbf" + ONE.encode()).report["imported"] == 1


def test_an_empty_list_imports_nothing(alice):
    assert (brought := bring(alice, [])).status == "done"
    assert brought.report["imported"] == 0


def test_a_file_that_is_too_large_or_empty_is_refused_at_once(alice, settings):
    settings.MAX_IMPORT_BYTES = 100
    with pytest.raises(ContentTooLong, match="100 bytes"):
        uploads.accept(alice, SimpleUploadedFile("x", b"x" * 101))
    with pytest.raises(InvalidRequest, match="empty"):
        uploads.accept(alice, SimpleUploadedFile("x", b""))
    assert not Import.objects.exists()
    assert not list(files.path_of(files.IMPORTS, "x").parent.iterdir())


def test_the_same_file_is_imported_by_one_import_at_a_time_and_only_a_few_at_once(alice):
    first = uploads.accept(alice, SimpleUploadedFile("x", b"1"))
    assert uploads.accept(alice, SimpleUploadedFile("x", b"1")) == first
    for content in (b"2", b"3"):
        uploads.accept(alice, SimpleUploadedFile("x", content))
    with pytest.raises(TransferInProgress):
        uploads.accept(alice, SimpleUploadedFile("x", b"4"))
    assert len(list(files.path_of(files.IMPORTS, "x").parent.iterdir())) == 3


def test_a_file_that_is_gone_ends_its_import_with_a_sentence(alice):
    begun = uploads.accept(alice, SimpleUploadedFile("x", b"1"))
    files.delete(files.IMPORTS, begun.file)
    reading.read(begun.pk)
    assert "gone" in Import.objects.get(pk=begun.pk).report["error"]


def test_uploaded_files_are_readable_to_the_site_alone_and_named_by_chance(alice):
    begun = uploads.accept(alice, SimpleUploadedFile("../../etc/passwd\x00.json", b"1"))
    path = files.path_of(files.IMPORTS, begun.file)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert "passwd" not in path.name


_READ = """
import resource, sys
from pathlib import Path
import django
django.setup()
from conversations.services.imports.containers import documents
from conversations.services.imports.documents import conversations
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with documents(Path(sys.argv[1])) as found:
    count = sum(1 for document in found for _ in conversations(document, lambda: None))
print(count, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_large_file_is_read_in_little_memory(tmp_path):
    path = tmp_path / "conversations.json"
    filling = {"metadata": {"filling": "x" * 2_000}}
    with path.open("w") as file:
        file.write("[")
        for number in range(360):
            nodes = [node(f"n{place}", f"n{place - 1}", **filling) for place in range(40)]
            file.write("," * bool(number) + json.dumps(conversation(*nodes, conversation_id=f"c{number}")))
        file.write("]")
    assert path.stat().st_size > 33_000_000
    environment = {"DJANGO_SETTINGS_MODULE": "chatsite.settings", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path)], env=environment, capture_output=True, text=True, check=True
    )
    count, grown_mb = map(int, done.stdout.split())
    assert count == 360
    assert grown_mb < 60
