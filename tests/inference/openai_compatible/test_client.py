"""What differs with servers that speak OpenAI's protocol: counting, stopping, continuing, waiting."""

import orjson
import pytest

from inference.events import Finished, Piece, Reasoning
from inference.messages import ChatMessage, ChatRequest, SamplingOptions
from inference.model_server import ServerInfo
from inference.openai_compatible import OpenAICompatibleClient
from inference.tgi.client import Timeouts
from inference.tgi.errors import GenerationFailed, InvalidRequest, Misbehaved, Overloaded, Stalled
from tests.inference.tgi.asking import ask, finish_of, request, text_of, thoughts_of
from tests.inference.tgi.scripted_server import response_of, scripted_server, stream_of


def chunk(delta, reason=None, **fields):
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1760000000,
        "model": "large",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}],
        **fields,
    }


def text(content, reason=None, **fields):
    return chunk({"content": content}, reason, **fields)


def counts(tokens_in, tokens_out, **details):
    counted = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    return counted | ({"prompt_tokens_details": details} if details else {})


ROLE = chunk({"role": "assistant", "content": ""})
STOP = chunk({}, "stop", stop_reason=None)
USAGE = {**STOP, "choices": [], "usage": counts(20, 3, cached_tokens=16)}


async def answer_of(session, script, chat_request=None, **options):
    async with scripted_server(script) as server:
        return await ask(OpenAICompatibleClient(server.url, session=session, **options), chat_request)


async def body_of(session, chat_request):
    async with scripted_server(stream_of(STOP, "[DONE]")) as server:
        await ask(OpenAICompatibleClient(server.url + "/v1/", session=session), chat_request)
        assert server.exchanges[0].path == "/v1/chat/completions"
        return server.exchanges[0].body


async def test_chunks_without_text_are_no_pieces(session):
    null_role = chunk({"role": "assistant", "content": None})
    events = await answer_of(session, stream_of(ROLE, null_role, text("Hi"), text(" you"), STOP, USAGE, "[DONE]"))
    assert events == [Piece("Hi", 0), Piece(" you", 0), Finished("stop", 20, 16, 3)]


async def test_pieces_count_their_tokens_where_usage_is_continuous(session):
    script = stream_of(
        {**ROLE, "usage": counts(20, 0)},
        text("Hi there", usage=counts(20, 2)),
        text(" you", usage=counts(20, 3)),
        chunk({}, "stop", usage=counts(20, 3)),
        USAGE,
        "[DONE]",
    )
    events = await answer_of(session, script)
    assert events == [Piece("Hi there", 2), Piece(" you", 1), Finished("stop", 20, 16, 3)]


async def test_tokens_are_unknown_where_the_server_does_not_count(session):
    assert finish_of(await answer_of(session, stream_of(text("Hi"), STOP, "[DONE]"))) == Finished(
        "stop", None, None, None
    )


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_what_a_model_thinks_aloud_is_no_part_of_the_answer(session, field):
    script = stream_of(ROLE, chunk({field: "Hm\0"}), chunk({field: "m", "content": None}), text("Hi"), STOP, "[DONE]")
    events = await answer_of(session, script)
    assert thoughts_of(events) == "Hm\ufffdm"
    assert events[0] == Reasoning("Hm\ufffd", 0)
    assert text_of(events) == "Hi"


async def test_text_that_looks_like_a_stop_string_is_not_held_back(session):
    """These servers keep stop strings to themselves."""
    events = await answer_of(session, stream_of(text("a ST"), text("OP"), STOP, "[DONE]"), request(stop=("STOP",)))
    assert text_of(events) == "a STOP"


async def test_a_server_that_forgets_the_limit_is_stopped(session):
    async def script(exchange):
        await exchange.start_stream()
        await exchange.send_frames(ROLE, *[text("x")] * 50)
        await exchange.wait_until_closed()

    events = await answer_of(session, script, request(max_new_tokens=10))
    assert text_of(events) == "x" * 10
    assert finish_of(events).reason == "length"


async def test_the_finish_reason_may_come_after_the_last_permitted_token(session):
    script = stream_of(ROLE, *[text("x")] * 3, chunk({}, "length"), USAGE, "[DONE]")
    events = await answer_of(session, script, request(max_new_tokens=3))
    assert finish_of(events) == Finished("length", 20, 16, 3)


async def test_whitespace_that_continues_a_partial_answer_is_new(session):
    events = await answer_of(session, stream_of(text("\n- b"), STOP, "[DONE]"), request("List", partial="- a\n"))
    assert text_of(events) == "\n- b"


async def test_a_partial_answer_is_sent_with_what_makes_a_server_continue_it(session):
    body = await body_of(session, request("Count", partial="One"))
    assert body["messages"][-1] == {"role": "assistant", "content": "One"}
    assert body["continue_final_message"] is True
    assert body["add_generation_prompt"] is False


async def test_a_new_answer_is_asked_for_without_those_fields(session):
    named = ChatRequest((ChatMessage("user", "Hi"),), SamplingOptions(7, temperature=0.5), "request-1", model="large")
    assert await body_of(session, named) == {
        "messages": [{"role": "user", "content": "Hi"}],
        "model": "large",
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_progress": True,
        "max_tokens": 7,
        "temperature": 0.5,
    }


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"message": "too long", "type": "BadRequestError", "param": None, "code": 400}, InvalidRequest),
        (400, {"code": 400, "message": "too long", "type": "exceed_context_size_error", "n_ctx": 4096}, InvalidRequest),
        (503, {"code": 503, "message": "Loading model", "type": "unavailable_error"}, Overloaded),
        (500, {"message": "engine", "type": "InternalServerError", "code": 500}, GenerationFailed),
        (404, {"message": "no such model", "type": "NotFoundError", "code": 404}, Misbehaved),
    ],
)
async def test_a_refusal_before_the_stream_is_told_apart(session, status, error, kind):
    with pytest.raises(kind):
        await answer_of(session, response_of(status, orjson.dumps({"error": error})))


async def test_silence_is_no_stall_before_the_first_token_is_due(session):
    """vLLM and SGLang send no keep-alives, however long a request waits."""

    async def script(exchange):
        await exchange.start_stream()
        await exchange.stay_silent(0.5)
        await exchange.send_frames(text("Hi"), STOP, "[DONE]")
        await exchange.end()

    timeouts = Timeouts(read_seconds=0.1, token_seconds=5, first_token_seconds=5)
    assert text_of(await answer_of(session, script, timeouts=timeouts)) == "Hi"


async def test_chunks_without_text_are_no_progress(session):
    async def script(exchange):
        await exchange.start_stream()
        await exchange.send_frames(ROLE)
        await exchange.wait_until_closed()

    with pytest.raises(Stalled):
        await answer_of(session, script, timeouts=Timeouts(first_token_seconds=0.3))


@pytest.mark.parametrize(
    ("model", "window"),
    [
        (b'{"id":"large","owned_by":"vllm","max_model_len":8192}', 8192),
        (b'{"id":"large","owned_by":"llamacpp","meta":{"n_ctx":4096,"n_ctx_train":32768}}', 4096),
        (b'{"id":"large"}', None),
    ],
)
async def test_a_server_says_which_model_it_runs(session, model, window):
    async with scripted_server(response_of(200, b'{"object":"list","data":[%b]}' % model)) as server:
        told = await OpenAICompatibleClient(server.url, session=session).info()
    assert told == ServerInfo("large", None, None, None, window, None)


async def test_of_several_models_the_wanted_one_is_told(session):
    listed = b'{"data":[{"id":"large","max_model_len":8192},{"id":"tuned","max_model_len":4096}]}'
    async with scripted_server(response_of(200, listed)) as server:
        client = OpenAICompatibleClient(server.url, session=session)
        found = [(await client.info(wanted)).model_id for wanted in ("", "tuned", "absent")]
    assert found == ["large", "tuned", "large"]


@pytest.mark.parametrize("answer", [b"{}", b'{"data":[]}', b'{"data":[7]}', b'{"data":[{}]}', b"<html>"])
async def test_a_server_that_lists_no_model_misbehaves(session, answer):
    async with scripted_server(response_of(200, answer)) as server:
        with pytest.raises(Misbehaved):
            await OpenAICompatibleClient(server.url, session=session).info()


@pytest.mark.parametrize(("status", "is_healthy"), [(200, True), (503, False)])
async def test_health_is_what_the_server_says(session, status, is_healthy):
    async with scripted_server(response_of(status, b"", None)) as server:
        assert await OpenAICompatibleClient(server.url, session=session).is_healthy() is is_healthy


async def test_a_text_is_asked_for_in_the_words_of_every_server(session):
    async with scripted_server(response_of(200, b'{"count":3,"max_model_len":99,"tokens":[5,6,7]}')) as server:
        assert await OpenAICompatibleClient(server.url, session=session).count_text("Hello there you") == 3
        assert server.exchanges[0].path == "/tokenize"
        asked = server.exchanges[0].body
    assert {asked["prompt"], asked["content"]} == {"Hello there you"}
    assert (asked["add_special_tokens"], asked["add_special"], asked["parse_special"]) == (False, False, True)
