"""What is Alice's does not exist for anybody else: not by key, not by session, not by socket."""

import json
from uuid import uuid4

import aiohttp
import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async

from tests.accounts.factories import make_key
from tests.api_client import ApiClient


@pytest_asyncio.fixture
async def alices(alice):
    """A finished and an unfinished answer of Alice's."""
    conversation_id = await alice.conversation(title="Secret")
    events = await alice.send(conversation_id, '@twin {"text": "Secret words."}\nGo')
    async with alice.sending(conversation_id, '@twin {"tokens": 5000, "token_ms": 5}\nGo') as stream:
        running = await stream.until("token")
        yield {
            "conversation_id": conversation_id,
            "message_id": events[0].data["message_id"],
            "user_message_id": events[0].data["user_message_id"],
            "generation_id": events[0].data["generation_id"],
            "running_id": running[0].data["generation_id"],
        }
        await alice.call("POST", f"/v1/generations/{running[0].data['generation_id']}/cancel")


CALLS = [
    ("GET", "/v1/conversations/{conversation_id}", None),
    ("PATCH", "/v1/conversations/{conversation_id}", {"title": "Mine"}),
    ("DELETE", "/v1/conversations/{conversation_id}", None),
    ("GET", "/v1/conversations/{conversation_id}/messages", None),
    ("GET", "/v1/conversations/{conversation_id}/messages?branch=all", None),
    ("POST", "/v1/conversations/{conversation_id}/messages", {"content": "Hello"}),
    ("POST", "/v1/messages/{message_id}/regenerate", {}),
    ("POST", "/v1/messages/{user_message_id}/regenerate", {}),
    ("POST", "/v1/messages/{message_id}/continue", {}),
    ("POST", "/v1/conversations/{conversation_id}/fork", {}),
    ("GET", "/v1/conversations/{conversation_id}/context", None),
    ("GET", "/v1/generations/{generation_id}/context", None),
    ("GET", "/v1/generations/{generation_id}", None),
    ("GET", "/v1/generations/{running_id}", None),
    ("GET", "/v1/generations/{generation_id}/stream", None),
    ("GET", "/v1/generations/{running_id}/stream", None),
    ("POST", "/v1/generations/{running_id}/cancel", None),
    ("POST", "/v1/generations/{generation_id}/cancel", None),
]


@pytest.mark.parametrize(("method", "path", "body"), CALLS, ids=[f"{method} {path}" for method, path, _ in CALLS])
async def test_a_strangers_call_finds_nothing(alices, alice, charlie, site, http, method, path, body):
    status, answer = await charlie.call(method, path.format(**alices), body)
    assert (status, answer["error"]["code"]) == (404, "not_found"), answer

    unknown = {name: str(uuid4()) for name in alices}
    status, same = await charlie.call(method, path.format(**unknown), body)
    assert (status, same) == (404, answer), "an id that exists must look like one that does not"

    nobody = ApiClient(http, site.url, "")
    nobody.headers = {}
    status, answer = await nobody.call(method, path.format(**alices), body)
    assert (status, answer["error"]["code"]) == (401, "not_authenticated")

    status, running = await alice.call("GET", f"/v1/generations/{alices['running_id']}")
    assert running["status"] == "running", "nothing that a stranger did has touched it"


async def test_a_strangers_parent_is_not_found(alices, charlie):
    own = await charlie.conversation()
    path = f"/v1/conversations/{own}/messages"
    status, answer = await charlie.call("POST", path, {"content": "Hi", "parent_id": alices["message_id"]})
    assert (status, answer["error"]["param"]) == (404, "parent_id")
    status, answer = await charlie.call(
        "PATCH", f"/v1/conversations/{own}", {"active_message_id": alices["message_id"]}
    )
    assert (status, answer["error"]["param"]) == (422, "active_message_id")


async def test_lists_hold_only_ones_own(alices, alice, charlie):
    assert (await charlie.call("GET", "/v1/conversations"))[1]["data"] == []
    assert [c["title"] for c in (await alice.call("GET", "/v1/conversations"))[1]["data"]] == ["Secret"]


async def test_a_strangers_socket_follows_nothing(alices, charlie, charlie_secret, http, site):
    async with http.ws_connect(f"{site.url}/v1/live", protocols=["bearer", charlie_secret]) as socket:
        for generation_id in (alices["generation_id"], alices["running_id"]):
            await socket.send_str(json.dumps({"type": "follow", "generation_id": generation_id, "after": None}))
            answer = json.loads((await socket.receive(timeout=5)).data)
            assert (answer["type"], answer["code"]) == ("error", "not_found")


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/v1/conversations", "read"),
        ("POST", "/v1/conversations", "write"),
        ("POST", "/v1/conversations/{conversation_id}/messages", "chat"),
        ("POST", "/v1/messages/{message_id}/continue", "chat"),
        ("POST", "/v1/conversations/{conversation_id}/fork", "write"),
        ("POST", "/v1/generations/{running_id}/cancel", "chat"),
        ("GET", "/v1/generations/{running_id}/stream", "read"),
        ("DELETE", "/v1/conversations/{conversation_id}", "write"),
        ("GET", "/v1/models", "read"),
    ],
)
async def test_a_key_without_the_scope_is_refused(alices, site, http, django_user_model, method, path, scope):
    owner = await django_user_model.objects.aget(email="alice@example.com")
    others = {"chat", "read", "write", "account"} - {scope}
    secret = await sync_to_async(make_key)(owner, sorted(others))
    status, answer = await ApiClient(http, site.url, secret).call(method, path.format(**alices), {})
    assert (status, answer["error"]["code"]) == (403, "scope_missing")
    assert scope in answer["error"]["message"]


async def test_a_socket_needs_a_credential_or_a_page_of_this_site(http, site, alice_secret):
    async def close_code(**kwargs):
        async with http.ws_connect(f"{site.url}/v1/live", **kwargs) as socket:
            message = await socket.receive(timeout=5)
            assert message.type is aiohttp.WSMsgType.CLOSE
            return message.data

    assert await close_code(origin=site.url) == 4401
    assert await close_code(origin="https://evil.example") == 4403
    assert await close_code() == 4403
    assert await close_code(protocols=["bearer", "ck_wrong"]) == 4401
    assert await close_code(protocols=["bearer"]) == 4401
