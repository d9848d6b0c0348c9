"""An ASGI application that sends as fast as it may, and tells how much it has sent: what a slow client meets."""

import asyncio

CHUNK = b"x" * 65_536
CHUNK_COUNT = 1024

sent = {"bytes": 0}
one_has_left = asyncio.Event()


async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await _send_all(lambda chunk: send({"type": "websocket.send", "bytes": chunk}))
        await send({"type": "websocket.close"})
        return
    if scope["path"] == "/sent":
        # What is not read when the connection closes makes the system reset it, and the answer may be lost.
        while (await receive()).get("more_body"):
            pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/all":
        await _send_all(lambda chunk: send({"type": "http.response.body", "body": chunk, "more_body": True}))
        await send({"type": "http.response.body"})
    elif scope["path"] == "/wait":
        await _wait_for_the_client_to_leave(receive, send)
    else:
        if scope["path"] == "/left":
            await one_has_left.wait()
        await send({"type": "http.response.body", "body": str(sent["bytes"]).encode()})


async def _wait_for_the_client_to_leave(receive, send):
    await receive()
    await send({"type": "http.response.body", "body": b"begun", "more_body": True})
    assert (await receive())["type"] == "http.disconnect"
    one_has_left.set()


async def _send_all(send_chunk):
    sent["bytes"] = 0
    for _ in range(CHUNK_COUNT):
        await send_chunk(CHUNK)
        sent["bytes"] += len(CHUNK)
