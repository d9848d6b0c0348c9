"""Exports and imports over HTTP, through the web process and Celery as they run for people."""

import asyncio
import io
import json
import urllib.parse
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.conf import settings

from conversations.models import Conversation, Export, Import, ImportedConversation
from tests.accounts.factories import make_key, make_user, signed_in_as
from tests.api_client import ApiClient
from tests.conversations.transfers.chatgpt_export import chain
from tests.conversations.transfers.test_own_imports import without_ids
from tests.own_processes import wait_until
from tests.running_site import running_site

pytestmark = pytest.mark.timeout(240)

MOST_BYTES = 60_000_000
USUAL_BYTES = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
WAIT_SECONDS = 60
BOUNDARY = "a-boundary-of-the-test"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


@pytest.fixture(scope="module")
def transfer_site(no_other_worker, tmp_path_factory):
    home = tmp_path_factory.mktemp("transfers")
    environment = {"DATA_DIR": str(home / "data"), "MAX_IMPORT_BYTES": str(MOST_BYTES)}
    with running_site(log=home / "log", **environment) as site, site.celery():
        yield site


@pytest.fixture
def site(transfer_site, transactional_db):
    transfer_site.twin.reset()
    return transfer_site


@pytest.fixture
def files(site):
    """The files that are kept; those of earlier tests, whose rows are gone, are not."""
    folder = Path(site.environment["DATA_DIR"])
    before = {path for name in ("exports", "imports") for path in folder.glob(f"{name}/*")}
    return lambda: [path for name in ("exports", "imports") for path in folder.glob(f"{name}/*") if path not in before]


@pytest.fixture
def alice_secret(site):
    return make_key(make_user("alice@example.com", tier="enterprise"))


@pytest_asyncio.fixture
async def alice(alice_secret, http, site):
    return ApiClient(http, site.url, alice_secret)


async def form_of(content: bytes, most: int = 256 * 1024) -> AsyncIterator[bytes]:
    """A form with one file, in pieces: sent so it is chunked, and tells no length."""
    head = 'Content-Disposition: form-data; name="file"; filename="conversations.json"'
    yield f"--{BOUNDARY}\r\n{head}\r\nContent-Type: application/json\r\n\r\n".encode()
    for start in range(0, len(content), most):
        yield content[start : start + most]
    yield f"\r\n--{BOUNDARY}--\r\n".encode()


async def post_file(client, content: bytes, *, tells_length=True, path="/v1/imports", headers=None):
    """Upload a file; return the status and the JSON."""
    data = io.BytesIO(b"".join([piece async for piece in form_of(content)])) if tells_length else form_of(content)
    sent = {**(client.headers if headers is None else headers), **FORM}
    async with client.session.post(client.url + path, data=data, headers=sent) as answer:
        return answer.status, await answer.json()


async def until_over(client, path) -> dict:
    """Ask until the export or import is over."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            status, told = await client.call("GET", path)
            assert status == 200, told
            if told["status"] in ("done", "failed"):
                return told
            await asyncio.sleep(0.05)


async def bring(client, content: bytes, **how) -> dict:
    status, begun = await post_file(client, content, **how)
    assert status == 202, begun
    return await until_over(client, f"/v1/imports/{begun['import_id']}")


async def exported(client) -> bytes:
    """The zip of all that there is."""
    status, begun = await client.call("POST", "/v1/exports")
    assert status == 202, begun
    done = await until_over(client, f"/v1/exports/{begun['export_id']}")
    assert done["status"] == "done", done
    async with client.session.get(client.url + done["url"], headers=client.headers) as answer:
        assert answer.status == 200
        return await answer.read()


def said_in(archive: bytes) -> dict:
    return json.loads(zipfile.ZipFile(io.BytesIO(archive)).read("conversations.json"))


def long_file(byte_count: int) -> bytes:
    """One conversation of two messages, and so much that is passed over."""
    document = json.dumps([{**chain(2), "x": []}]).encode()
    filling = b'"' + b"x" * 999_997 + b'",'
    return document.replace(b'"x": []', b'"x": [' + filling * (byte_count // 1_000_000) + b"0]")


async def test_what_was_exported_and_deleted_comes_back_as_the_same_trees(alice):
    for question in ("Which tea?", "And which coffee?"):
        conversation_id = await alice.conversation(title=question, instructions="Be brief.")
        events = await alice.send(conversation_id, '@twin {"text": "Green."}\n' + question)
        await alice.send(conversation_id, "And then?", parent_id=events[0].data["message_id"])
        await alice.call("POST", f"/v1/messages/{events[0].data['message_id']}/regenerate", {"stream": False})
    archive = await exported(alice)
    before = said_in(archive)
    for conversation in before["conversations"]:
        status, _ = await alice.call("DELETE", f"/v1/conversations/{conversation['conversation_id']}")
        assert status == 204
    report = (await bring(alice, archive))["report"]
    assert (report["imported"], report["skipped"], report["refused"]) == (2, 0, 0)
    assert without_ids(said_in(await exported(alice))) == without_ids(before)
    again = (await bring(alice, archive))["report"]
    assert (again["imported"], again["skipped"]) == (0, 2)


@pytest.mark.parametrize("tells_length", [True, False])
async def test_a_file_far_above_what_other_bodies_may_be_is_taken_in(alice, tells_length):
    told = await bring(alice, long_file(20_000_000), tells_length=tells_length)
    assert told["status"] == "done", told
    assert told["report"]["imported"] == 1


@pytest.mark.parametrize("tells_length", [True, False])
async def test_a_file_above_the_limit_is_413_in_the_usual_shape(alice, files, tells_length):
    status, told = await post_file(alice, b" " * (MOST_BYTES + USUAL_BYTES + 1), tells_length=tells_length)
    assert (status, told["error"]["code"]) == (413, "content_too_long")
    assert told["error"]["details"] == {"most_bytes": MOST_BYTES}
    status, told = await post_file(alice, b" " * (MOST_BYTES + 1), tells_length=tells_length)
    assert (status, told["error"]["details"]) == (413, {"most_bytes": MOST_BYTES})
    assert files() == []


@pytest.mark.parametrize("tells_length", [True, False])
async def test_who_may_not_upload_is_told_so_however_much_is_sent(alice, site, tells_length):
    content = b" " * (2 * USUAL_BYTES)
    for headers, status, code in [
        ({}, 401, "not_authenticated"),
        ({"Authorization": "Bearer ck_none"}, 401, "not_authenticated"),
        ({"Authorization": f"Bearer {await _key_without_scope()}"}, 403, "scope_missing"),
    ]:
        answered, told = await post_file(alice, content, headers=headers, tells_length=tells_length)
        assert (answered, told["error"]["code"]) == (status, code)


async def _key_without_scope() -> str:
    return await sync_to_async(lambda: make_key(make_user(), ("chat", "read", "write")))()


async def test_no_other_address_takes_more_than_before(alice):
    data = io.BytesIO(b'{"title": "' + b"x" * USUAL_BYTES + b'"}')
    headers = {**alice.headers, "Content-Type": "application/json"}
    async with alice.session.post(f"{alice.url}/v1/conversations", data=data, headers=headers) as answer:
        status, told = answer.status, await answer.json()
    assert (status, told["error"]["code"]) == (413, "content_too_long")


async def test_a_signed_in_browser_may_upload_as_much(alice, site):
    client = await sync_to_async(lambda: signed_in_as(make_user("browser@example.com")))()
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    token = "a" * 32
    header = "; ".join(f"{name}={value}" for name, value in {**cookies, "csrftoken": token}.items())
    headers = {"Cookie": header, "X-CSRFToken": token, "Origin": site.url}
    status, told = await post_file(alice, long_file(6_000_000), headers=headers)
    assert status == 202, told


async def test_a_large_upload_takes_little_memory_of_the_web_process(alice, site):
    await bring(alice, long_file(1_000_000))
    before = _peak_bytes(site.web.pid)
    await bring(alice, long_file(MOST_BYTES - 1_000_000), tells_length=False)
    assert _peak_bytes(site.web.pid) - before < 25_000_000


def _peak_bytes(pid: int) -> int:
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


async def test_two_exports_at_once_are_one_and_two_imports_of_a_file_bring_it_once(alice):
    exports = await asyncio.gather(*(alice.call("POST", "/v1/exports") for _ in range(5)))
    assert [status for status, _ in exports] == [202] * 5
    content = json.dumps([chain(2, conversation_id=str(number)) for number in range(50)]).encode()
    begun = await asyncio.gather(*(post_file(alice, content) for _ in range(3)))
    assert {status for status, _ in begun} == {202}
    for import_id in {told["import_id"] for _, told in begun}:
        assert (await until_over(alice, f"/v1/imports/{import_id}"))["status"] == "done"
    for export_id in {told["export_id"] for _, told in exports}:
        assert (await until_over(alice, f"/v1/exports/{export_id}"))["status"] == "done"
    assert await Conversation.objects.acount() == 50
    assert await ImportedConversation.objects.acount() == 50


async def test_an_account_that_is_deleted_while_a_file_is_read_keeps_nothing_of_it(alice, files, http):
    content = json.dumps([chain(20, conversation_id=str(number)) for number in range(3_000)]).encode()
    status, begun = await post_file(alice, content)
    assert status == 202, begun
    await alice.call("POST", "/v1/exports")
    await sync_to_async(wait_until)(Conversation.objects.exists, WAIT_SECONDS, "the first conversation")
    status, closing = await alice.call("DELETE", "/v1/account")
    assert status == 202, closing
    status, told = await alice.call("GET", f"/v1/imports/{begun['import_id']}")
    assert status in (401, 403), told
    link = urllib.parse.urlsplit(closing["receipt_url"])
    address = f"{alice.url}{link.path}?{link.query}"
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            async with http.get(address, headers={"Accept": "application/json"}) as answer:
                receipt = await answer.json()
            if receipt["status"] == "completed":
                break
            await asyncio.sleep(0.1)
    for model in (Conversation, Import, Export, ImportedConversation):
        assert not await model.objects.aexists()
    assert files() == []
