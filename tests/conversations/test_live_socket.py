"""The browser tab's socket: the very events of the stream, and what changes elsewhere."""

import asyncio
import json

import aiohttp
import pytest
from asgiref.sync import sync_to_async

from accounts import api_keys
from accounts.models import APIKey
from tests.accounts.factories import make_key


async def receive(socket):
    message = await socket.receive(timeout=10)
    return json.loads(message.data)


async def receive_until(socket, is_last):
    received = [await receive(socket)]
    while not is_last(received[-1]):
        received.append(await receive(socket))
    return received


def follow(generation_id, after=None):
    return json.dumps({"type": "follow", "generation_id": generation_id, "after": after})


async def test_a_socket_gets_the_very_events_of_the_stream(alice, alice_secret, http, site):
    conversation_id = await alice.conversation()
    async with http.ws_connect(f"{site.url}/v1/live", protocols=["bearer", alice_secret]) as socket:
        assert socket.protocol == "bearer"
        async with alice.sending(conversation_id, '@twin {"tokens": 40, "token_ms": 3}\nGo') as stream:
            start = await stream.next()
            generation_id = start.data["generation_id"]
            await socket.send_str(follow(generation_id))
            streamed = [start, *await stream.rest()]
        received = await receive_until(socket, lambda data: data["type"] == "done")
    events = [data for data in received if "event_id" in data]
    assert {data.pop("generation_id") for data in events} == {generation_id}
    assert [data.pop("event_id") for data in events][-1] == streamed[-1].id
    assert "".join(d["text"] for d in events if d["type"] == "token") == "".join(
        e.data["text"] for e in streamed if e.type == "token"
    )


async def test_one_socket_carries_many_generations(alice, alice_secret, http, site):
    streams = []
    async with http.ws_connect(f"{site.url}/v1/live", protocols=["bearer", alice_secret]) as socket:
        for number in range(5):
            conversation_id = await alice.conversation()
            task = asyncio.create_task(alice.send(conversation_id, f'@twin {{"text": "Answer {number}."}}\nGo'))
            streams.append(task)
        finished = [await task for task in streams]
        texts = {events[0].data["generation_id"]: "" for events in finished}
        for generation_id in texts:
            await socket.send_str(follow(generation_id))
        ended = 0
        while ended < 5:
            data = await receive(socket)
            if data["type"] == "token":
                texts[data["generation_id"]] += data["text"]
            ended += data["type"] == "done"
    assert sorted(texts.values()) == [f"Answer {number}." for number in range(5)]


async def test_a_socket_resumes_after_an_event(alice, alice_secret, http, site):
    conversation_id = await alice.conversation()
    events = await alice.send(conversation_id, '@twin {"tokens": 20, "token_ms": 10}\nGo')
    middle = len(events) // 2
    async with http.ws_connect(f"{site.url}/v1/live", protocols=["bearer", alice_secret]) as socket:
        await socket.send_str(follow(events[0].data["generation_id"], events[middle].id))
        received = await receive_until(socket, lambda data: data["type"] == "done")
    text = "".join(data["text"] for data in received if data["type"] == "token")
    assert text == "".join(e.data["text"] for e in events[middle + 1 :] if e.type == "token")


async def test_after_unfollow_no_more_tokens_come(alice, alice_secret, http, site):
    conversation_id = await alice.conversation()
    async with (
        http.ws_connect(f"{site.url}/v1/live", protocols=["bearer", alice_secret]) as socket,
        alice.sending(conversation_id, '@twin {"tokens": 3000, "token_ms": 3}\nGo') as stream,
    ):
        start = await stream.next()
        generation_id = start.data["generation_id"]
        await socket.send_str(follow(generation_id))
        await receive_until(socket, lambda data: data["type"] == "token")
        await socket.send_str(json.dumps({"type": "unfollow", "generation_id": generation_id}))
        await socket.send_str("not json")  # its answer comes after what was on its way
        await receive_until(socket, lambda data: data["type"] == "error")
        await stream.until("token", 20)
        await socket.send_str("not json")
        late = await receive_until(socket, lambda data: data["type"] == "error")
        assert [data for data in late if "event_id" in data] == []
        await alice.call("POST", f"/v1/generations/{generation_id}/cancel")


async def test_other_tabs_are_told_what_changes(alice, alice_secret, http, site):
    async with http.ws_connect(f"{site.url}/v1/live", protocols=["bearer", alice_secret]) as socket:
        await socket.send_str("not json")  # once it is answered, the socket has joined its group
        await receive(socket)
        conversation_id = await alice.conversation()
        assert await receive(socket) == {"type": "conversation_changed", "conversation_id": conversation_id}
        events = await alice.send(conversation_id, '@twin {"text": "Hi."}\nGo')
        added = await receive(socket)
        assert added["type"] == "message_added"
        assert added["message_id"] == events[0].data["message_id"]
        ended = await receive(socket)
        assert (ended["type"], ended["status"]) == ("conversation_changed", "complete")
        assert await receive(socket) == {"type": "limits_changed"}
        await alice.call("DELETE", f"/v1/conversations/{conversation_id}")
        assert await receive(socket) == {"type": "conversation_deleted", "conversation_id": conversation_id}


async def test_a_key_that_may_not_read_is_told_nothing(alice, alice_secret, http, site):
    key = await APIKey.objects.select_related("user").aget(digest=api_keys.digest_of(alice_secret))
    blind = await sync_to_async(make_key)(key.user, ["chat", "write", "account"])
    async with (
        http.ws_connect(f"{site.url}/v1/live", protocols=["bearer", blind]) as socket,
        http.ws_connect(f"{site.url}/v1/live", protocols=["bearer", alice_secret]) as seeing,
    ):
        for each in (socket, seeing):
            await each.send_str("not json")
            await receive(each)
        await alice.conversation()
        assert (await receive(seeing))["type"] == "conversation_changed"
        await socket.send_str("not json")
        assert (await receive(socket))["type"] == "error"


async def test_strangers_are_told_nothing(alice, charlie, charlie_secret, http, site):
    async with http.ws_connect(f"{site.url}/v1/live", protocols=["bearer", charlie_secret]) as socket:
        await socket.send_str("not json")
        await receive(socket)
        await alice.send(await alice.conversation(), '@twin {"text": "Hi."}\nGo')
        # What Redis was told first comes first, so what is told of his own comes after what might be told of hers.
        conversation_id = await charlie.conversation()
        assert await receive(socket) == {"type": "conversation_changed", "conversation_id": conversation_id}


async def test_bad_messages_are_answered_and_harm_nothing(alice, alice_secret, http, site):
    bad = ["", "{", "[]", "null", '{"type": "follow"}', '{"type": "dance", "generation_id": "x"}', "x" * 5000]
    bad += [follow("not-an-id"), follow("01890000-0000-7000-8000-000000000000", after="x"), "\u0000"]
    async with http.ws_connect(f"{site.url}/v1/live", protocols=["bearer", alice_secret]) as socket:
        for message in bad:
            await socket.send_str(message)
            assert (await receive(socket))["type"] == "error"
        await socket.send_bytes(b"\xff\x00")
        assert (await receive(socket))["type"] == "error"
        events = await alice.send(await alice.conversation(), '@twin {"text": "Hi."}\nGo')
        await socket.send_str(follow(events[0].data["generation_id"]))
        assert (await receive_until(socket, lambda data: data["type"] == "done"))[-1]["finish_reason"] == "stop"


async def test_a_revoked_key_closes_its_socket(alice, alice_secret, http, site):
    async with http.ws_connect(f"{site.url}/v1/live", protocols=["bearer", alice_secret]) as socket:
        await socket.send_str("not json")
        await receive(socket)
        key = await APIKey.objects.aget()
        await sync_to_async(api_keys.revoke_key)(key)
        await socket.receive(timeout=5)
        assert socket.close_code == 4401


@pytest.mark.parametrize("path", ["/", "/ws", "/v1/live/", "/v1/conversations"])
async def test_a_socket_at_another_address_is_refused_and_is_no_fault_of_the_site(http, site, path):
    logged = site.log.stat().st_size
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await http.ws_connect(site.url + path)
    assert refused.value.status == 403
    assert b"Traceback" not in site.log.read_bytes()[logged:]
