"""A client that reads slowly makes the application wait; the server keeps no more than a little for it."""

import asyncio
import subprocess
import sys

import aiohttp
import pytest
import pytest_asyncio

from tests.chatsite.endless_application import CHUNK, CHUNK_COUNT
from tests.running_site import ROOT, free_port

ALL_BYTES = CHUNK_COUNT * len(CHUNK)
MOST_KEPT_BYTES = 16 * 1024 * 1024
"""The kernel keeps a few megabytes on either side of a connection, too."""


@pytest.fixture
def server():
    port = free_port()
    command = [
        "-m",
        "chatsite.web",
        "-b",
        "127.0.0.1",
        "-p",
        str(port),
        "tests.chatsite.endless_application:application",
    ]
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(20)


@pytest_asyncio.fixture
async def url(server):
    async with asyncio.timeout(30), aiohttp.ClientSession() as session:
        while True:
            try:
                await _sent(session, server)
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.05)
            else:
                return server


async def _sent(session, address):
    async with session.get(f"{address}/sent") as response:
        return int(await response.text())


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
