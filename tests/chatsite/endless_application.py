"""An ASGI application that sends as fast as it may, and tells how much it has sent: what a slow client meets."""

CHUNK = b"x" * 65_536
CHUNK_COUNT = 1024

sent = {"bytes": 0}


async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        await _send_all(lambda chunk: send({"type": "websocket.send", "bytes": chunk}))
        await send({"type": "websocket.close"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/all":
        await _send_all(lambda chunk: send({"type": "http.response.body", "body": chunk, "more_body": True}))
        await send({"type": "http.response.body"})
    else:
        await send({"type": "http.response.body", "body": str(sent["bytes"]).encode()})


async def _send_all(send_chunk):
    sent["bytes"] = 0
    for _ in range(CHUNK_COUNT):
        await send_chunk(CHUNK)
        sent["bytes"] += len(CHUNK)
