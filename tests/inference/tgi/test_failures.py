"""Every way in which a model server can fail, and the error that tells it."""

import json
from contextlib import aclosing

import pytest

from inference.events import Piece
from inference.tgi import errors
from inference.tgi.client import TGIClient, Timeouts
from inference.tgi.transport import DEFAULT_TIMEOUTS
from tests.inference.tgi.asking import ask, request
from tests.inference.tgi.scripted_server import (
    bytes_of,
    delta,
    event,
    response_of,
    scripted_server,
    stream_of,
)


async def failure_of(session, script, *, timeouts=DEFAULT_TIMEOUTS):
    """The error of an answer, and the events before it."""
    events = []

    async def collect(answer):
        async with aclosing(answer):
            async for piece in answer:
                events.append(piece)

    async with scripted_server(script) as server:
        client = TGIClient(server.url, session=session, timeouts=timeouts)
        with pytest.raises(errors.ModelServerError) as raised:
            await collect(client.stream_chat(request()))
    return raised.value, events


def tgi_error(error_type, message="words"):
    return {"error": message, "error_type": error_type}


def chat_error(message, status=422):
    return {"error": {"message": message, "http_status_code": status}}


FRAMES = [
    (tgi_error("overloaded", "Model is overloaded"), errors.Overloaded),
    (tgi_error("validation", "Input validation error: `inputs` must be non empty"), errors.InvalidRequest),
    (tgi_error("tool_error"), errors.InvalidRequest),
    (tgi_error("template_error"), errors.TemplateFailed),
    (tgi_error("generation", "Request failed during generation: Server error: CUDA"), errors.GenerationFailed),
    (tgi_error("incomplete_generation"), errors.Incomplete),
    (tgi_error("incomplete_generation_stream"), errors.Incomplete),
    (tgi_error("stream_serialization_error"), errors.GenerationFailed),
    (chat_error("Model is overloaded"), errors.Overloaded),
    (chat_error("Input validation error: too long"), errors.InvalidRequest),
    (chat_error("Template error: no template"), errors.TemplateFailed),
    (chat_error("Request failed during generation: Server error: CUDA"), errors.GenerationFailed),
    (chat_error("Incomplete generation stream"), errors.Incomplete),
    ({"error": "no type at all"}, errors.GenerationFailed),
    ({"error": {"message": "words", "type": "BadRequestError", "param": None, "code": 400}}, errors.InvalidRequest),
    ({"error": {"message": "words", "type": "unavailable_error", "code": 503}}, errors.Overloaded),
    ({"error": {"code": 500, "message": "words", "type": "server_error"}}, errors.GenerationFailed),
    ({"error": {}}, errors.GenerationFailed),
    ({"error": ["words"]}, errors.GenerationFailed),
]


@pytest.mark.parametrize(("frame", "kind"), FRAMES)
async def test_an_error_as_the_first_frame_is_told_apart(session, frame, kind):
    error, events = await failure_of(session, stream_of(frame, "[DONE]"))
    assert type(error) is kind
    assert events == []


@pytest.mark.parametrize(("frame", "kind"), FRAMES)
async def test_an_error_after_text_is_told_after_the_text(session, frame, kind):
    error, events = await failure_of(session, stream_of(delta("Hi"), frame, "[DONE]"))
    assert type(error) is kind
    assert events == [Piece("Hi", 1)]


HTML = b"<html><body>502 Bad Gateway</body></html>"

RESPONSES = [
    (
        422,
        b'{"error":"Input validation error: x","error_type":"validation"}',
        "application/json",
        errors.InvalidRequest,
    ),
    (
        422,
        b"Failed to deserialize the JSON body into the target type",
        "text/plain; charset=utf-8",
        errors.InvalidRequest,
    ),
    (422, b'{"error":"Template error: x","error_type":"template_error"}', "application/json", errors.TemplateFailed),
    (422, b'{"error":"Tool error: x","error_type":"tool_error"}', "application/json", errors.InvalidRequest),
    (422, b'{"detail":"no error key"}', "application/json", errors.InvalidRequest),
    (400, b"Failed to parse the request body as JSON", "text/plain", errors.InvalidRequest),
    (400, b'{"error":{"message":"x","type":"BadRequestError","code":400}}', "application/json", errors.InvalidRequest),
    (413, b"Failed to buffer the request body: length limit exceeded", "text/plain", errors.InvalidRequest),
    (415, b"Expected request with `Content-Type: application/json`", "text/plain", errors.InvalidRequest),
    (401, b"", None, errors.Unauthorized),
    (403, b"", None, errors.Unauthorized),
    (429, b'{"error":"Model is overloaded","error_type":"overloaded"}', "application/json", errors.Overloaded),
    (429, b"", None, errors.Overloaded),
    (424, b'{"error":"Request failed","error_type":"generation"}', "application/json", errors.GenerationFailed),
    (
        500,
        b'{"error":"Incomplete generation","error_type":"incomplete_generation"}',
        "application/json",
        errors.Incomplete,
    ),
    (
        500,
        b'{"error":{"message":"x","type":"InternalServerError","code":500}}',
        "application/json",
        errors.GenerationFailed,
    ),
    (503, b'{"error":{"message":"Loading model","code":503}}', "application/json", errors.Overloaded),
    (502, HTML, "text/html", errors.Misbehaved),
    (503, HTML, "text/html", errors.Misbehaved),
    (404, b"", None, errors.NotOffered),
    (302, b"", None, errors.Misbehaved),
    (500, b"\xff\xfe", "text/plain", errors.Misbehaved),
    (200, HTML, "text/html", errors.Misbehaved),
    (200, b'{"choices":[]}', "application/json", errors.Misbehaved),
    (200, b"", None, errors.Misbehaved),
]


@pytest.mark.parametrize(("status", "body", "content_type", "kind"), RESPONSES)
async def test_a_response_that_is_no_stream_is_told_apart(session, status, body, content_type, kind):
    error, events = await failure_of(session, response_of(status, body, content_type))
    assert type(error) is kind
    assert events == []


GARBAGE = {
    "not JSON": b"data: {half\n\n",
    "not an object": b"data: [1]\n\n",
    "a number": b"data: 7\n\n",
    "not UTF-8": b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n',
    "half a character": b'data: {"choices":[{"delta":{"content":"\xf0\x9f\x8d"}}]}\n\n',
    "a surrogate in UTF-8": b'data: {"choices":[{"delta":{"content":"\xed\xa0\xbc"}}]}\n\n',
    "text that is no string": b'data: {"choices":[{"delta":{"content":7}}]}\n\n',
    "choices that are no list": b'data: {"choices":7}\n\n',
    "choices by name": b'data: {"choices":{"a":1}}\n\n',
    "a choice that is no object": b'data: {"choices":[7]}\n\n',
    "a delta that is no object": b'data: {"choices":[{"delta":7}]}\n\n',
    "a reason that is no string": b'data: {"choices":[{"delta":{},"finish_reason":7}]}\n\n',
    "a very deep frame": b"data: " + b"[" * 200_000 + b"\n\n",
    "a very long number": b'data: {"n":' + b"9" * 10_000 + b"}\n\n",
    "an endless line": b"data: " + b"x" * 5_000_000,
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
async def test_garbage_is_the_replicas_fault(session, garbage):
    error, events = await failure_of(session, bytes_of(event(delta("Hi")) + garbage + event(delta("never", "stop"))))
    assert type(error) is errors.Misbehaved
    assert events == [Piece("Hi", 1)]
    assert error.retryable


async def test_a_clean_end_without_a_final_frame_is_incomplete(session):
    error, events = await failure_of(session, stream_of(delta("Hi")))
    assert type(error) is errors.Incomplete
    assert events == [Piece("Hi", 1)]


async def test_a_stream_without_any_frame_is_incomplete(session):
    error, _ = await failure_of(session, bytes_of(b":\n\n"))
    assert type(error) is errors.Incomplete


@pytest.mark.parametrize("cut", range(1, len(event(delta("Hé", "stop"))) - 2, 5))
async def test_a_clean_end_within_a_frame_is_incomplete(session, cut):
    error, events = await failure_of(session, bytes_of(event(delta("Hi")) + event(delta("Hé", "stop"))[:cut]))
    assert type(error) is errors.Incomplete
    assert events == [Piece("Hi", 1)]


async def test_an_answer_that_the_server_gives_up_is_incomplete(session):
    error, _ = await failure_of(session, stream_of(delta("Hi"), delta("", "abort"), "[DONE]"))
    assert type(error) is errors.Incomplete


@pytest.mark.parametrize("with_reset", [False, True], ids=["FIN", "RST"])
async def test_a_cut_connection_is_incomplete(session, with_reset):
    async def script(exchange):
        await exchange.start_stream()
        await exchange.send_frames(delta("Hi"))
        exchange.reset() if with_reset else exchange.writer.close()

    error, _ = await failure_of(session, script)
    assert type(error) is errors.Incomplete


async def test_a_body_that_breaks_the_transfer_coding_is_no_proper_end(session):
    async def script(exchange):
        await exchange.start_stream()
        await exchange.send_frames(delta("Hi"))
        await exchange.write(b"this is no chunk size\r\n")

    error, _ = await failure_of(session, script)
    assert type(error) in {errors.Incomplete, errors.Misbehaved}


async def test_something_that_speaks_no_http_misbehaves(session):
    async def script(exchange):
        await exchange.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")

    error, _ = await failure_of(session, script)
    assert type(error) is errors.Misbehaved


async def test_a_refused_connection_is_unreachable(session, unused_tcp_port):
    with pytest.raises(errors.Unreachable):
        await ask(TGIClient(f"http://127.0.0.1:{unused_tcp_port}", session=session))


async def test_an_unknown_host_is_unreachable(session):
    with pytest.raises(errors.Unreachable):
        await ask(TGIClient("http://no-such-host.invalid", session=session))


@pytest.mark.parametrize("with_reset", [False, True], ids=["FIN", "RST"])
async def test_a_connection_lost_before_the_answer_began_is_unreachable(session, with_reset):
    async def script(exchange):
        exchange.reset() if with_reset else exchange.writer.close()

    error, _ = await failure_of(session, script)
    assert type(error) is errors.Unreachable


async def test_a_kept_connection_that_the_server_has_left_is_replaced(session):
    """llama.cpp closes each connection just after its answer; then the next request must not be taken for a failure."""

    async def script(exchange):
        if exchange.is_first_of_connection:
            await stream_of(delta("Hi", "stop"), "[DONE]")(exchange)
        else:
            exchange.writer.close()

    async with scripted_server(script) as server:
        client = TGIClient(server.url, session=session)
        for _ in range(3):
            assert (await ask(client))[0] == Piece("Hi", 1)
        assert server.connections == 3


async def test_silence_before_the_headers_is_a_stall(session):
    async def script(exchange):
        await exchange.wait_until_closed()

    error, _ = await failure_of(session, script, timeouts=Timeouts(read_seconds=0.1))
    assert type(error) is errors.Stalled


async def test_headers_later_than_the_first_token_may_be_are_a_stall(session):
    async def script(exchange):
        await exchange.wait_until_closed()

    error, _ = await failure_of(session, script, timeouts=Timeouts(first_token_seconds=0.1))
    assert type(error) is errors.Stalled


async def test_silence_after_text_is_a_stall(session):
    async def script(exchange):
        await exchange.start_stream()
        await exchange.send_frames(delta("Hi"))
        await exchange.wait_until_closed()

    error, events = await failure_of(session, script, timeouts=Timeouts(read_seconds=0.1))
    assert type(error) is errors.Stalled
    assert events == [Piece("Hi", 1)]


@pytest.mark.parametrize(
    ("texts", "timeouts"), [([], Timeouts(first_token_seconds=0.3)), (["Hi", "!"], Timeouts(token_seconds=0.3))]
)
async def test_a_token_that_is_late_is_a_stall_though_silence_may_last_longer(session, texts, timeouts):
    async def script(exchange):
        await exchange.start_stream()
        for text in texts:
            await exchange.send_frames(delta(text))
        await exchange.wait_until_closed()

    error, events = await failure_of(session, script, timeouts=timeouts)
    assert type(error) is errors.Stalled
    assert events == [Piece(text, 1) for text in texts]


@pytest.mark.parametrize(
    ("texts", "timeouts"), [([], Timeouts(first_token_seconds=0.3)), (["Hi"], Timeouts(token_seconds=0.3))]
)
async def test_keep_alives_are_no_progress(session, texts, timeouts):
    async def script(exchange):
        await exchange.start_stream()
        for text in texts:
            await exchange.send_frames(delta(text))
        await exchange.send_repeatedly(b":\n\n", every_seconds=0.05)

    error, events = await failure_of(session, script, timeouts=timeouts)
    assert type(error) is errors.Stalled
    assert events == [Piece(text, 1) for text in texts]


async def test_keep_alives_prove_that_the_connection_lives(session):
    """With them a first token may take longer than silence may last."""

    async def script(exchange):
        await exchange.start_stream()
        await exchange.send_repeatedly(b":\n\n", every_seconds=0.1, times=12)
        await exchange.send_frames(delta("Hi", "stop"), "[DONE]")
        await exchange.end()

    async with scripted_server(script) as server:
        client = TGIClient(server.url, session=session, timeouts=Timeouts(read_seconds=1))
        assert (await ask(client))[0] == Piece("Hi", 1)


async def test_a_complete_answer_does_not_wait_for_a_usage_that_never_comes(session):
    async def script(exchange):
        await exchange.start_stream()
        await exchange.send_frames(delta("Hi", "stop"))
        await exchange.wait_until_closed()

    async with scripted_server(script) as server:
        client = TGIClient(server.url, session=session, timeouts=Timeouts(read_seconds=1))
        events = await ask(client)
    assert events[-1].reason == "stop"


async def test_a_failure_leaves_the_session_usable(session):
    scripts = [
        bytes_of(b"data: garbage\n\n"),
        response_of(502, HTML, "text/html"),
        stream_of(delta("Hi", "stop"), "[DONE]"),
    ]

    async def script(exchange):
        await scripts.pop(0)(exchange)

    async with scripted_server(script) as server:
        client = TGIClient(server.url, session=session)
        for _ in range(2):
            with pytest.raises(errors.Misbehaved):
                await ask(client)
        assert (await ask(client))[0] == Piece("Hi", 1)


def test_an_error_shown_in_a_log_quotes_nothing_that_the_server_said():
    error = errors.error_of_response(
        422, json.dumps({"error": "my secret prompt", "error_type": "validation"}).encode()
    )
    assert error.message == "my secret prompt"
    assert "secret" not in str(error)


def test_only_what_another_replica_would_refuse_as_well_is_not_retried():
    kinds = {errors.Unreachable, errors.Overloaded, errors.Unauthorized, errors.GenerationFailed}
    kinds |= {errors.Incomplete, errors.Stalled, errors.Misbehaved}
    assert all(kind.retryable for kind in kinds)
    assert not errors.InvalidRequest.retryable
    assert not errors.TemplateFailed.retryable
