"""What a call that is answered by a reply takes, passes on and answers."""

import json
from uuid import UUID, uuid4

import pytest
from django.test import override_settings

from tests.running_site import wait_until

SAY = '@twin {{"text": "{}"}}\nGo'


def failing(**fault):
    return "@twin " + json.dumps({"tokens": 5, "fault": {"always": True, **fault}}) + "\nGo"


async def answer_to(client, path, body, **headers):
    """Return status, headers and JSON."""
    async with client.session.post(client.url + path, json=body, headers={**client.headers, **headers}) as response:
        return response.status, response.headers, await response.json()


@pytest.fixture
def asked_of_the_model(site):
    """Return the body of the last request that the model server got."""
    return lambda: site.twin.request(site.twin.report()["requests"][-1]["number"])["body"]


async def test_a_stream_is_not_cached_nor_buffered_and_tells_the_limits(alice):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, SAY.format("Hi")) as stream:
        headers = stream.response.headers
        events = await stream.rest()
    assert headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert headers["Cache-Control"] == "no-cache, no-transform"
    assert headers["X-Accel-Buffering"] == "no"
    assert "Content-Encoding" not in headers
    assert UUID(headers["X-Request-ID"])
    limit, remaining = (int(headers[f"x-ratelimit-{name}-requests"]) for name in ("limit", "remaining"))
    assert remaining == limit - 1
    assert headers["x-ratelimit-reset-requests"]
    start = events[0].data
    assert start["limits"] == {"requests_remaining": remaining, "tokens_remaining": None}
    names = {"generation_id", "conversation_id", "user_message_id", "message_id", "model", "limits", "type"}
    assert set(start) == names
    assert "id" not in start
    assert events[-1].data.keys() == {"type", "message_id", "finish_reason", "usage"}


async def test_without_a_stream_the_whole_answer_comes_as_one_object(alice):
    path = f"/v1/conversations/{await alice.conversation()}/messages"
    status, headers, answer = await answer_to(alice, path, {"content": SAY.format("Whole."), "stream": False})
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert int(headers["x-ratelimit-remaining-requests"]) == int(headers["x-ratelimit-limit-requests"]) - 1
    assert (answer["content"], answer["status"], answer["finish_reason"]) == ("Whole.", "complete", "stop")
    assert answer["usage"]["out"] > 0
    generation = answer.pop("generation")
    _, listed = await alice.call("GET", path)
    assert listed["data"][-1] == answer
    _, found = await alice.call("GET", f"/v1/generations/{answer['message_id']}")
    assert found.pop("message") == answer
    assert found == generation
    assert (generation["generation_id"], generation["attempt"], generation["error"]) == (answer["message_id"], 1, None)
    times = [generation[name] for name in ("queued_at", "started_at", "first_token_at", "finished_at")]
    assert times == sorted(times)
    assert all(time.endswith("Z") for time in times)


async def test_every_option_reaches_the_model_server_and_nothing_else_does(alice, asked_of_the_model):
    options = {"temperature": 0.25, "top_p": 0.5, "seed": 7, "max_tokens": 9, "stop": ["END", "\n\n"]}
    path = f"/v1/conversations/{await alice.conversation(instructions='Be brief.')}/messages"
    await alice.call("POST", path, {"content": SAY.format("Hi"), "stream": False, "options": options})
    asked = asked_of_the_model()
    assert {name: asked.pop(name) for name in options} == options
    assert asked.pop("messages")[-1] == {"role": "user", "content": SAY.format("Hi")}
    assert asked == {"stream": True, "stream_options": {"include_usage": True}}


async def test_options_that_are_left_out_are_the_model_servers(alice, asked_of_the_model):
    await alice.send(await alice.conversation(), SAY.format("Hi"))
    assert asked_of_the_model().keys() == {"messages", "stream", "stream_options", "max_tokens"}


async def test_an_answer_is_never_longer_than_the_tier_allows(charlie, asked_of_the_model):
    path = f"/v1/conversations/{await charlie.conversation()}/messages"
    await charlie.call(
        "POST", path, {"content": SAY.format("Hi"), "options": {"max_tokens": 1_000_000}, "stream": False}
    )
    assert asked_of_the_model()["max_tokens"] == 1024


async def test_instructions_come_before_what_is_said(alice, asked_of_the_model):
    await alice.send(await alice.conversation(instructions="Answer in French."), SAY.format("Oui"))
    first = asked_of_the_model()["messages"][0]
    assert first["role"] == "system"
    assert "Answer in French." in first["content"]


async def test_a_failed_answer_is_an_error_where_no_stream_tells_it(alice):
    path = f"/v1/conversations/{await alice.conversation()}/messages"
    body = {"content": failing(kind="plain_422"), "stream": False}
    status, headers, answer = await answer_to(alice, path, body, **{"Idempotency-Key": "once"})
    assert (status, answer["error"]["code"]) == (422, "invalid_request")
    assert "x-ratelimit-remaining-requests" in headers
    details = answer["error"]["details"]
    _, generation = await alice.call("GET", f"/v1/generations/{details['generation_id']}")
    assert (generation["status"], generation["finish_reason"]) == ("failed", "error")
    assert generation["error"] == {name: answer["error"][name] for name in ("code", "message")}
    assert details == {name: generation[name] for name in ("generation_id", "conversation_id")} | {
        "message_id": generation["message"]["message_id"]
    }
    again = await answer_to(alice, path, body, **{"Idempotency-Key": "once"})
    assert (again[0], again[2]) == (status, answer)


async def test_a_failed_answer_is_an_event_of_the_stream(alice):
    events = await alice.send(await alice.conversation(), failing(kind="plain_422"))
    error, done = events[-2:]
    assert error.data.keys() == {"type", "code", "message", "retryable"}
    assert (error.data["code"], done.data["finish_reason"]) == ("invalid_request", "error")


async def test_regenerating_takes_a_model_and_refuses_one_there_is_not(alice):
    events = await alice.send(await alice.conversation(), SAY.format("Hi"))
    path = f"/v1/messages/{events[0].data['message_id']}/regenerate"
    for body in (
        {"model": "small", "stream": False},
        {"model": "auto", "stream": False},
        {"model": None, "stream": False},
    ):
        status, answer = await alice.call("POST", path, body)
        assert (status, answer["model"], answer["content"]) == (200, "small", "Hi")
    status, answer = await alice.call("POST", path, {"model": "none-such"})
    assert (status, answer["error"]["param"]) == (404, "model")
    for body, param in (({"model": 5}, "model"), ({"stream": "no"}, "stream"), ({"x": 1}, "x"), ([], "body")):
        status, answer = await alice.call("POST", path, body)
        assert (status, answer["error"]["param"]) == (422, param)


async def test_regenerating_needs_no_body(alice):
    events = await alice.send(await alice.conversation(), SAY.format("Hi"))
    path = f"{alice.url}/v1/messages/{events[0].data['message_id']}/regenerate"
    async with alice.session.post(path, headers=alice.headers) as response:
        assert (response.status, response.content_type) == (200, "text/event-stream")
        assert b'"finish_reason":"stop"' in await response.read()


async def test_head_of_a_stream_follows_nothing(alice, site):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"tokens": 5000, "token_ms": 5}\nGo') as stream:
        generation_id = (await stream.until("token"))[0].data["generation_id"]
        path = f"{site.url}/v1/generations/{generation_id}/stream"
        async with alice.session.head(path, headers=alice.headers) as response:
            assert (response.status, response.content_type) == (200, "text/event-stream")
        status, _ = await alice.call("POST", f"/v1/generations/{generation_id}/cancel")
        assert status == 204
    async with alice.session.head(f"{site.url}/v1/generations/{uuid4()}/stream", headers=alice.headers) as response:
        assert response.status == 404


@pytest.mark.parametrize("where", ["header", "parameter"])
@pytest.mark.parametrize("event_id", ["x", "-1", "1.5", "9007199254740993", "9" * 5000, "0x10"])
async def test_an_event_id_that_no_stream_gave_out_is_refused(alice, where, event_id):
    events = await alice.send(await alice.conversation(), SAY.format("Hi"))
    path = f"/v1/generations/{events[0].data['generation_id']}/stream"
    if where == "header":
        status, answer = await alice.call("GET", path, **{"Last-Event-ID": event_id})
    else:
        status, answer = await alice.call("GET", f"{path}?after={event_id}")
    assert (status, answer["error"]["code"]) == (422, "invalid_request")
    assert answer["error"]["param"] == ("Last-Event-ID" if where == "header" else "after")


@pytest.mark.parametrize("key", ["x" * 256, "tab\there", "x" * 5000])
async def test_an_idempotency_key_that_cannot_be_kept_is_refused(alice, key):
    path = f"/v1/conversations/{await alice.conversation()}/messages"
    status, answer = await alice.call("POST", path, {"content": "Hello"}, **{"Idempotency-Key": key})
    assert (status, answer["error"]["param"]) == (422, "Idempotency-Key")
    assert (await alice.call("GET", path))[1]["data"] == []


async def in_chunks(client, *parts):
    async def chunks():
        for part in parts:
            yield part

    headers = {**client.headers, "Content-Type": "application/json"}
    async with client.session.post(f"{client.url}/v1/conversations", data=chunks(), headers=headers) as response:
        return response.status, response.headers, await response.json()


async def test_a_body_may_come_in_chunks(alice):
    status, _, made = await in_chunks(alice, b'{"tit', b'le": "In ', b'parts"}')
    assert (status, made["title"]) == (201, "In parts")


async def test_a_body_in_chunks_has_the_same_limit(alice):
    status, headers, answer = await in_chunks(alice, b'{"title": "', *[b"x" * 1_000_000] * 12, b'"}')
    assert (status, answer["error"]["code"]) == (413, "content_too_long")
    assert headers["X-Request-ID"]


async def test_models_are_listed_in_openais_shape_with_tier_and_context_size(alice):
    _, listed = await alice.call("GET", "/v1/models")
    assert listed["object"] == "list"
    [model] = listed["data"]
    assert {name: model[name] for name in ("id", "object", "tier", "is_default")} == {
        "id": "small", "object": "model", "tier": "enterprise", "is_default": True,
    }  # fmt: skip
    assert isinstance(model["created"], int)
    assert isinstance(model["owned_by"], str)


def test_a_models_context_size_is_what_its_servers_say(site, client, alice_secret):
    def context_size():
        [model] = client.get("/v1/models", headers={"Authorization": f"Bearer {alice_secret}"}).json()["data"]
        return model["context_size"]

    with override_settings(MODEL_FLEET=f"small={site.twin.url}"):
        assert wait_until(context_size, what="the worker's report") == 100_000


async def test_a_conversation_tells_how_full_the_window_is(alice):
    conversation_id = await alice.conversation()
    events = await alice.send(conversation_id, SAY.format("Hi"))
    usage = events[-1].data["usage"]
    _, conversation = await alice.call("GET", f"/v1/conversations/{conversation_id}")
    assert conversation["context"]["used"] == usage["in"] + usage["out"]
    assert conversation["active_message_id"] == events[0].data["message_id"]
