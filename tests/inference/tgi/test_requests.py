"""What is sent to a TGI server."""

import pytest

from inference.messages import ChatMessage, ChatRequest, SamplingOptions
from inference.model_server import ServerInfo
from inference.openai_compatible import OpenAICompatibleClient
from inference.tgi.client import TGIClient, Timeouts
from inference.tgi.errors import InvalidRequest, Misbehaved, Stalled
from tests.inference.tgi.asking import ask, request
from tests.inference.tgi.scripted_server import delta, response_of, scripted_server, stream_of

DONE = stream_of(delta("", "stop"), "[DONE]")


async def body_of(session, chat_request):
    async with scripted_server(DONE) as server:
        await ask(TGIClient(server.url + "/", session=session), chat_request)
        assert server.exchanges[0].path == "/v1/chat/completions"
        return server.exchanges[0].body


async def test_only_what_is_set_is_sent(session):
    assert await body_of(session, request("Hello", max_new_tokens=7)) == {
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 7,
    }


async def test_every_option_is_sent_in_the_form_that_tgi_takes(session):
    body = await body_of(session, request(temperature=0, top_p=0.9, seed=2**64 - 1, stop=("a", "b")))
    assert {name: body[name] for name in ("temperature", "top_p", "seed", "stop")} == {
        "temperature": 0,
        "top_p": 0.9,
        "seed": 2**64 - 1,
        "stop": ["a", "b"],
    }


async def test_a_top_p_of_one_is_left_out_because_tgi_refuses_it(session):
    assert "top_p" not in await body_of(session, request(top_p=1.0))


async def test_the_model_is_left_out_because_tgi_takes_it_for_an_adapter(session):
    named = ChatRequest((ChatMessage("user", "Hello"),), SamplingOptions(7), "request-1", model="large")
    assert "model" not in await body_of(session, named)


async def test_a_partial_answer_is_sent_as_the_last_message(session):
    body = await body_of(session, request("Count", partial="One, "))
    assert body["messages"][-1] == {"role": "assistant", "content": "One, "}


async def test_the_key_and_the_request_are_named_in_the_headers(session):
    async with scripted_server(DONE) as server:
        await ask(TGIClient(server.url, session=session, api_key="secret"))
        headers = server.exchanges[0].headers
    assert headers["authorization"] == "Bearer secret"
    assert headers["x-request-id"] == "request-1"
    assert headers["content-type"] == "application/json"
    assert headers["accept-encoding"] == "identity"


async def test_a_prompt_of_several_megabytes_is_sent_whole(session):
    body = await body_of(session, request("é" * 2_000_000))
    assert body["messages"][0]["content"] == "é" * 2_000_000


async def test_a_prompt_that_is_not_unicode_is_refused_before_it_is_sent(session):
    async with scripted_server(DONE) as server:
        with pytest.raises(InvalidRequest):
            await ask(TGIClient(server.url, session=session), request("\ud83c"))
        assert not server.exchanges


INFO = (
    b'{"model_id":"M","model_sha":"abc","model_pipeline_tag":"text-generation","max_concurrent_requests":128,'
    b'"max_input_tokens":4095,"max_total_tokens":4096,"router":"text-generation-router","version":"3.3.6-dev0"}'
)


@pytest.mark.parametrize("answer", [INFO, INFO.replace(b"max_input_tokens", b"max_input_length")], ids=["3.3", "2.0"])
async def test_a_server_says_which_model_it_runs(session, answer):
    async with scripted_server(response_of(200, answer)) as server:
        told = await TGIClient(server.url, session=session).info()
    assert told == ServerInfo("M", "abc", "3.3.6-dev0", 4095, 4096, 128)


async def test_what_a_server_does_not_say_is_unknown(session):
    async with scripted_server(response_of(200, b'{"model_id":"M","model_sha":null}')) as server:
        told = await TGIClient(server.url, session=session).info()
    assert told == ServerInfo("M", None, None, None, None, None)


@pytest.mark.parametrize("limit", [b"-1", b"0", b"true", b'"4096"', b"4e3", b"%d" % 2**40])
async def test_a_limit_that_makes_no_sense_is_unknown(session, limit):
    answer = b'{"model_id":"M","max_total_tokens":%b,"max_concurrent_requests":%b}' % (limit, limit)
    async with scripted_server(response_of(200, answer)) as server:
        told = await TGIClient(server.url, session=session).info()
    assert told == ServerInfo("M", None, None, None, None, None)


NAMELESS = [b'"%b"' % (b"x" * 201), b'"a\\u0000b"', b'""', b"7", b'"%b"' % (b"x" * 2**21)]


@pytest.mark.parametrize("name", NAMELESS, ids=["long", "NUL", "empty", "number", "endless"])
async def test_a_name_that_could_not_be_stored_is_no_name(session, name):
    async with scripted_server(response_of(200, b'{"model_id":%b}' % name)) as server:
        with pytest.raises(Misbehaved):
            await TGIClient(server.url, session=session).info()
    async with scripted_server(response_of(200, b'{"data":[{"id":%b}]}' % name)) as server:
        with pytest.raises(Misbehaved):
            await OpenAICompatibleClient(server.url, session=session).info()


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"version":"3"}'])
async def test_a_server_that_names_no_model_misbehaves(session, answer):
    async with scripted_server(response_of(200, answer)) as server:
        with pytest.raises(Misbehaved):
            await TGIClient(server.url, session=session).info()


TOKENS = (
    rb'{"tokenize_response":[{"id":1,"text":"<s>","start":0,"stop":3},{"id":7,"text":"\"id\":","start":3,"stop":8},'
    rb'{"id":2,"text":"]","start":8,"stop":9}],"templated_text":"<s>\"id\":]"}'
)


async def test_tokens_are_counted_as_the_chat_template_renders_them(session):
    async with scripted_server(response_of(200, TOKENS)) as server:
        assert await TGIClient(server.url, session=session).count_tokens([ChatMessage("user", "Hello")]) == 3
        assert server.exchanges[0].path == "/chat_tokenize"
        assert server.exchanges[0].body == {"messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize(("status", "is_healthy"), [(200, True), (503, False), (404, False)])
async def test_health_is_what_the_server_says(session, status, is_healthy):
    async with scripted_server(response_of(status, b"", None)) as server:
        assert await TGIClient(server.url, session=session).is_healthy() is is_healthy


async def test_a_server_that_is_not_there_is_not_healthy(session, unused_tcp_port):
    assert await TGIClient(f"http://127.0.0.1:{unused_tcp_port}", session=session).is_healthy() is False


async def test_a_server_that_never_answers_is_not_healthy(session):
    async def script(exchange):
        await exchange.wait_until_closed()

    async with scripted_server(script) as server:
        client = TGIClient(server.url, session=session, timeouts=Timeouts(read_seconds=0.1))
        assert await client.is_healthy() is False
        with pytest.raises(Stalled):
            await client.info()
