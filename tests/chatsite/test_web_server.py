"""The web server: what it keeps for a slow client, what it takes from any, and how it ends."""

import asyncio
import signal
import subprocess
import sys
from dataclasses import dataclass

import aiohttp
import pytest
import pytest_asyncio

from chatsite.web_protocols import MOST_HEAD_BYTES
from tests.chatsite.endless_application import CHUNK, CHUNK_COUNT
from tests.running_site import ROOT, free_port, wait_until

ALL_BYTES = CHUNK_COUNT * len(CHUNK)
MOST_KEPT_BYTES = 16 * 1024 * 1024
"""The kernel keeps a few megabytes on either side of a connection, too."""


@dataclass
class Server:
    """A running web server."""

    port: int
    process: subprocess.Popen

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def started():
    port = free_port()
    options = ["-b", "127.0.0.1", "-p", str(port), "tests.chatsite.endless_application:application"]
    process = subprocess.Popen([sys.executable, "-m", "chatsite.web", *options], cwd=ROOT)
    yield Server(port, process)
    process.terminate()
    process.wait(20)


@pytest_asyncio.fixture
async def server(started):
    async with asyncio.timeout(30), aiohttp.ClientSession() as session:
        while True:
            try:
                await _sent(session, started.url)
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.05)
            else:
                return started


@pytest.fixture
def url(server):
    return server.url


async def _sent(session, address):
    async with session.get(f"{address}/sent") as response:
        return int(await response.text())


async def _answer_to(server, request):
    """Return all that comes back until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    async with asyncio.timeout(20):
        answer = await reader.read()
    writer.close()
    return answer


async def _sent_when_it_waits(session, address):
    """Return how much was sent once it grows no more."""
    before, unchanged = -1, 0
    async with asyncio.timeout(30):
        while unchanged < 20:
            now = await _sent(session, address)
            unchanged = unchanged + 1 if now == before and now > 0 else 0
            before = now
            await asyncio.sleep(0.01)
    return before


async def test_a_response_waits_for_its_reader_and_arrives_whole(url):
    async with aiohttp.ClientSession(read_bufsize=4096) as session, session.get(f"{url}/all") as response:
        assert await _sent_when_it_waits(session, url) < MOST_KEPT_BYTES
        assert sum([len(chunk) async for chunk in response.content.iter_any()]) == ALL_BYTES


async def test_a_socket_waits_for_its_reader_and_arrives_whole(url):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), limit=4096)
    writer.write(
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    async with aiohttp.ClientSession() as session:
        assert await _sent_when_it_waits(session, url) < MOST_KEPT_BYTES
    received = 0
    async with asyncio.timeout(30):
        while received < ALL_BYTES:
            chunk = await reader.read(65_536)
            assert chunk, "the connection ended early"
            received += len(chunk)
    writer.close()


async def test_a_reader_that_leaves_while_the_application_waits_ends_nothing_else(url):
    async with aiohttp.ClientSession(read_bufsize=4096) as session:
        async with session.get(f"{url}/all") as response:
            await _sent_when_it_waits(session, url)
            response.close()
        async with session.get(f"{url}/all") as response:
            assert sum([len(chunk) async for chunk in response.content.iter_any()]) == ALL_BYTES


async def test_a_client_that_leaves_is_noticed_at_once(url):
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/wait") as response:
            assert await response.content.readany() == b"begun"
            response.close()
        async with asyncio.timeout(10), session.get(f"{url}/left") as response:
            assert response.status == 200


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * MOST_HEAD_BYTES + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * MOST_HEAD_BYTES + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-Many: x\r\n" * (MOST_HEAD_BYTES // 8) + b"\r\n",
    ],
    ids=["a long address", "a long header", "many headers"],
)
async def test_a_head_that_is_too_long_is_refused(server, head):
    answer = await _answer_to(server, head)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert answer.count(b"HTTP/1.1") == 1


async def test_a_header_that_never_ends_is_refused_before_it_has_ended(server):
    answer = await _answer_to(server, b"GET / HTTP/1.1\r\nX-Endless: " + b"x" * 2 * MOST_HEAD_BYTES)
    assert answer.startswith(b"HTTP/1.1 431 ")


async def test_a_head_just_within_the_limit_and_a_longer_body_are_taken(server):
    head = b"POST /sent HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 40000\r\nX-Long: "
    answer = await _answer_to(server, head + b"x" * (MOST_HEAD_BYTES - 200) + b"\r\n\r\n" + b"b" * 40_000)
    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_the_limit_counts_each_request_of_a_connection_anew(server):
    request = b"GET /sent HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * (MOST_HEAD_BYTES // 2) + b"\r\n\r\n"
    last = request.replace(b"X-Long", b"Connection: close\r\nX-Long")
    answer = await _answer_to(server, request * 4 + last)
    assert answer.count(b"HTTP/1.1 200 ") == 5


async def test_what_is_no_http_is_refused(server):
    assert (await _answer_to(server, b"\x16\x03\x01 hello\r\n\r\n")).startswith(b"HTTP/1.1 400 ")


async def test_http_1_0_gets_a_body_without_chunks_that_ends_with_the_connection(server):
    answer = await _answer_to(server, b"GET /sent HTTP/1.0\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head.lower()
    assert body == b"0"


async def test_an_answer_does_not_tell_which_server_it_comes_from(url):
    async with aiohttp.ClientSession() as session, session.get(f"{url}/sent") as response:
        assert "Server" not in response.headers


async def test_a_socket_message_that_is_too_long_ends_the_socket(url):
    async with aiohttp.ClientSession() as session, session.ws_connect(url, max_msg_size=0) as socket:
        await socket.send_bytes(b"x" * 70_000)
        async with asyncio.timeout(20):
            while (await socket.receive()).type is aiohttp.WSMsgType.BINARY:
                pass
        assert socket.closed


async def test_told_to_end_the_server_ends_its_streams_and_itself_at_once(server):
    async with aiohttp.ClientSession() as session, session.get(f"{server.url}/wait") as response:
        assert await response.content.readany() == b"begun"
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(aiohttp.ClientPayloadError):  # it was cut, so the client knows that more is to come
            async with asyncio.timeout(5):
                await response.content.read()
    assert await asyncio.to_thread(server.process.wait, 5) == 0


async def test_told_to_end_the_server_waits_only_so_long_for_a_reader(server):
    async with aiohttp.ClientSession(read_bufsize=4096) as session, session.get(f"{server.url}/all"):
        await _sent_when_it_waits(session, server.url)
        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(server.process.wait, 6) == 0


@pytest.fixture
def served_at(tmp_path):
    """Starts a server on a UNIX socket and returns the socket's path; ends it after the test."""
    path = tmp_path / "web"
    started = []

    def serve(*command):
        started.append(subprocess.Popen([sys.executable, "-m", *command[:1], "-u", str(path), *command[1:]], cwd=ROOT))
        wait_until(path.exists, 60, "the socket")
        return str(path)

    yield serve
    for process in started:
        process.terminate()
        process.wait(20)


async def test_it_listens_on_a_unix_socket(served_at):
    path = await asyncio.to_thread(served_at, "chatsite.web", "tests.chatsite.endless_application:application")
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as session:
        assert await _sent(session, "http://localhost") == 0


async def test_another_asgi_server_serves_the_site_as_well(served_at):
    path = await asyncio.to_thread(served_at, "daphne", "-v", "0", "chatsite.asgi:application")
    connector = aiohttp.UnixConnector(path)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get("http://localhost/healthz") as response,
    ):
        assert (response.status, await response.text()) == (200, "ok\n")


def test_no_request_has_to_wait_until_the_views_are_imported():
    script = "import chatsite.asgi, sys; print('conversations.views.pages' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "True"
