"""`/v1/exports` and `/v1/imports` as a program meets them: what they answer, and whom they refuse."""

import io
from datetime import timedelta
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.utils import timezone

from accounts import sanctions
from conversations.models import Export, Import
from conversations.services.exports import asking, writing
from conversations.services.imports import uploads
from conversations.services.transfers import files
from tests.accounts.factories import bearer, make_key, make_user
from tests.conversations.api.conftest import Caller
from tests.conversations.api.errors import error_of
from tests.conversations.transfers.chatgpt_export import chain
from tests.conversations.transfers.conftest import bring
from tests.conversations.transfers.test_own_imports import make_conversation

writes_exports = pytest.mark.django_db(transaction=True)
"""An export is one transaction's view of the database; it cannot be written within a test's own."""


@pytest.fixture
def dora(client, db):
    return Caller(client, make_user("dora@example.com"))


def upload(caller, content=b"[]", **fields):
    """Post a form that has a file, and whatever else is given."""
    given = {"file": SimpleUploadedFile("conversations.json", content), **fields}
    return caller.post("/v1/imports", encode_multipart(BOUNDARY, given), content_type=MULTIPART_CONTENT)


def export_for(user) -> Export:
    export = asking.ask_for(user)
    writing.write(export.pk)
    export.refresh_from_db()
    return export


@async_to_sync
async def content_of(fetched) -> bytes:
    return b"".join([piece async for piece in fetched.streaming_content])


@writes_exports
def test_an_export_is_asked_for_told_listed_and_fetched(dora):
    make_conversation(dora.user)
    asked = dora.post("/v1/exports")
    assert asked.status_code == 202
    told = asked.json()
    assert (told["status"], told["url"], told["error"]) == ("queued", None, None)
    writing.write(told["export_id"])
    done = dora.get(f"/v1/exports/{told['export_id']}").json()
    assert (done["status"], done["url"]) == ("done", f"/v1/exports/{told['export_id']}/file")
    assert dora.get("/v1/exports").json() == {"data": [done], "next_cursor": None}
    fetched = dora.get(done["url"])
    assert fetched["Content-Type"] == "application/zip"
    assert fetched["Content-Disposition"].startswith('attachment; filename="chat-export-')
    assert (fetched["X-Content-Type-Options"], fetched["Cache-Control"]) == ("nosniff", "no-store")
    assert int(fetched["Content-Length"]) == done["byte_count"] == len(content_of(fetched))


@writes_exports
def test_an_import_is_told_with_what_came_of_each_conversation(dora):
    brought = bring(dora.user, [chain(2), 7])
    assert brought.status == "done"
    told = dora.get(f"/v1/imports/{Import.objects.get().pk}").json()
    assert (told["status"], told["progress"]) == ("done", 1.0)
    assert [each["outcome"] for each in told["report"]["conversations"]] == ["imported", "refused"]


def test_a_file_is_taken_in_with_202_and_the_same_one_meanwhile_is_the_same_import(dora):
    first, second = upload(dora, b"[7]"), upload(dora, b"[7]")
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json() == second.json()
    assert (first.json()["status"], first.json()["report"]) == ("queued", None)


def test_a_fourth_import_at_once_is_refused(dora):
    for number in range(3):
        assert upload(dora, b"[%d]" % number).status_code == 202
    error_of(upload(dora, b"[3]"), 409, "transfer_in_progress")
    assert Import.objects.count() == 3


ROUTES = [
    ("GET", "/v1/exports"),
    ("POST", "/v1/exports"),
    ("GET", "/v1/exports/{export_id}"),
    ("GET", "/v1/exports/{export_id}/file"),
    ("POST", "/v1/imports"),
    ("GET", "/v1/imports/{import_id}"),
]
OF_ONE = [(method, path) for method, path in ROUTES if "{" in path]


@pytest.fixture
def owners(dora):
    """Addresses of what Dora has."""
    import_id = uploads.accept(dora.user, SimpleUploadedFile("conversations.json", b"[]")).pk
    with files.new_file(files.EXPORTS, "dora.zip") as file:
        file.write(b"PK")
    export = Export.objects.create(user=dora.user, status="done", file="dora.zip", byte_count=2)
    return {"export_id": export.pk, "import_id": import_id}


@pytest.mark.parametrize(("method", "path"), OF_ONE)
def test_somebody_elses_is_as_unknown_as_what_never_was(owners, client, method, path):
    stranger = Caller(client, make_user("stranger@example.com"))
    found = error_of(stranger.call(method, path.format(**owners)), 404, "not_found")
    never = error_of(stranger.call(method, path.format(**dict.fromkeys(owners, uuid4()))), 404, "not_found")
    assert found == never


def test_a_strangers_list_has_nothing_of_anybody_else(owners, client):
    stranger = Caller(client, make_user("stranger@example.com"))
    assert stranger.get("/v1/exports").json()["data"] == []


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_key_that_is_not_for_the_account_is_refused(dora, owners, method, path):
    dora.headers = bearer(make_key(dora.user, ("chat", "read", "write")))
    error = error_of(dora.call(method, path.format(**owners)), 403, "scope_missing")
    assert error["param"] == "account"


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_nobody_is_let_in(dora, owners, method, path):
    dora.headers = {}
    error_of(dora.call(method, path.format(**owners)), 401, "not_authenticated")


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_suspended_account_is_refused_its_data_too(dora, owners, method, path):
    staff = make_user("staff@example.com", is_staff=True)
    sanctions.suspend(dora.user, by=staff, reason="Spam.")
    error_of(dora.call(method, path.format(**owners)), 403, "account_suspended")


@pytest.mark.parametrize("body", ["null", "[]", "0", "false", '""', '"all"'])
def test_an_export_is_not_asked_for_by_what_is_no_object(dora, body):
    error_of(dora.post("/v1/exports", body), 422, "invalid_request")
    assert not Export.objects.exists()


def test_fields_that_nobody_documented_are_refused(dora):
    error_of(dora.post("/v1/exports", {"format": "csv"}), 422, "invalid_request")
    assert error_of(upload(dora, overwrite="1"), 422, "invalid_request")["param"] == "overwrite"
    assert not Export.objects.exists()
    assert not Import.objects.exists()


def test_a_form_without_a_file_and_an_empty_file_are_refused(dora, data_directory):
    bare = dora.post("/v1/imports", encode_multipart(BOUNDARY, {}), content_type=MULTIPART_CONTENT)
    assert error_of(bare, 422, "invalid_request")["param"] == "file"
    text = dora.post("/v1/imports", encode_multipart(BOUNDARY, {"file": "[]"}), content_type=MULTIPART_CONTENT)
    assert error_of(text, 422, "invalid_request")["param"] == "file"
    assert error_of(upload(dora, b""), 422, "invalid_request")["param"] == "file"
    assert not list(data_directory.glob("imports/*"))


def test_an_upload_is_a_form_and_nothing_else(dora):
    error = error_of(dora.post("/v1/imports", {"file": "[]"}), 415, "unsupported_media_type")
    assert "multipart/form-data" in error["message"]
    broken = dora.post("/v1/imports", b"no form", content_type="multipart/form-data")
    assert broken.status_code == 400
    assert broken.json()["error"]["code"] in ("malformed_request", "malformed_json")


def test_a_file_above_the_limit_is_413_with_the_limit_and_leaves_nothing(dora, settings, data_directory):
    settings.MAX_IMPORT_BYTES = 1_000
    error = error_of(upload(dora, b" " * 1_001), 413, "content_too_long")
    assert error["details"] == {"most_bytes": 1_000}
    assert not list(data_directory.glob("imports/*"))
    assert upload(dora, b" " * 1_000).status_code == 202


def test_a_file_whose_row_is_not_kept_is_not_kept_either(dora, data_directory):
    for number in range(4):
        upload(dora, b"[%d]" % number)
    assert len(list(data_directory.glob("imports/*"))) == 3


@writes_exports
@pytest.mark.parametrize("state", ["queued", "failed", "gone"])
def test_a_file_that_is_not_there_is_404(dora, state):
    export = export_for(dora.user) if state == "gone" else asking.ask_for(dora.user)
    if state == "failed":
        writing.fail(export.pk)
    if state == "gone":
        files.delete(files.EXPORTS, export.file)
    error_of(dora.get(f"/v1/exports/{export.pk}/file"), 404, "not_found")


@writes_exports
def test_an_expired_export_is_gone_though_nothing_has_deleted_it_yet(dora):
    export = export_for(dora.user)
    Export.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    error_of(dora.get(f"/v1/exports/{export.pk}"), 404, "not_found")
    error_of(dora.get(f"/v1/exports/{export.pk}/file"), 404, "not_found")
    assert dora.get("/v1/exports").json()["data"] == []


@writes_exports
def test_a_file_that_is_being_fetched_is_fetched_whole_though_it_expires_meanwhile(dora):
    export = export_for(dora.user)
    fetched = dora.get(f"/v1/exports/{export.pk}/file")
    Export.objects.update(expires_at=timezone.now())
    assert writing.delete_expired() == 1
    content = content_of(fetched)
    assert len(content) == export.byte_count
    assert io.BytesIO(content).read(2) == b"PK"
