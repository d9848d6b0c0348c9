"""What a TGI server's stream becomes: text, token counts, finish reasons, limits."""

import json

import pytest

from inference.events import Finished, Piece
from inference.tgi.client import TGIClient
from tests.inference.tgi.asking import ask, finish_of, request, text_of
from tests.inference.tgi.scripted_server import bytes_of, delta, event, scripted_server, stream_of, usage


async def answer_of(session, script, chat_request=None):
    async with scripted_server(script) as server:
        return await ask(TGIClient(server.url, session=session), chat_request)


async def test_an_answer_is_its_pieces_and_a_proper_end(session):
    script = stream_of(delta("Hi"), delta(" there"), delta("", "stop"), usage(5, 3), "[DONE]")
    assert await answer_of(session, script) == [Piece("Hi", 1), Piece(" there", 1), Finished("stop", 5, None, 3)]


async def test_tokens_without_text_count_with_the_next_piece(session):
    script = stream_of(delta(""), delta(""), delta("🍸"), delta("!"), delta("", "stop"), "[DONE]")
    assert await answer_of(session, script) == [Piece("🍸", 3), Piece("!", 1), Finished("stop", None, None, 5)]


async def test_an_answer_without_text_is_only_its_end(session):
    assert await answer_of(session, stream_of(delta("", "stop"), usage(5, 1), "[DONE]")) == [
        Finished("stop", 5, None, 1)
    ]


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("stop", "stop"),
        ("eos_token", "stop"),
        ("stop_sequence", "stop"),
        ("tool_calls", "stop"),
        ("something_new", "stop"),
        ("length", "length"),
    ],
)
async def test_every_spelling_of_a_finish_reason_is_understood(session, told, reason):
    events = await answer_of(session, stream_of(delta("Hi"), delta("!", told), "[DONE]"))
    assert text_of(events) == "Hi!"
    assert finish_of(events).reason == reason


async def test_the_end_marker_is_an_end_without_a_finish_reason(session):
    events = await answer_of(session, stream_of(delta("Hi"), {**delta(""), "choices": []}, "[DONE]"))
    assert finish_of(events) == Finished("stop", None, None, 1)


async def test_an_empty_finish_reason_is_none(session):
    events = await answer_of(session, stream_of(delta("Hi", ""), delta(" you", "stop"), "[DONE]"))
    assert text_of(events) == "Hi you"


async def test_a_finish_reason_is_an_end_without_an_end_marker(session):
    """TGI before 2.2 sends no `[DONE]`."""
    events = await answer_of(session, bytes_of(b"data:" + json.dumps(delta("Hi", "eos_token")).encode() + b"\n\n"))
    assert events == [Piece("Hi", 1), Finished("stop", None, None, 1)]


async def test_cached_tokens_are_reported_where_the_server_does(session):
    script = stream_of(delta("Hi", "stop"), usage(50, 1, cached_tokens=40), "[DONE]")
    assert finish_of(await answer_of(session, script)) == Finished("stop", 50, 40, 1)


async def test_frames_after_the_end_add_nothing(session):
    script = stream_of(delta("Hi", "stop"), delta(" again"), delta("!", "length"), "[DONE]", delta("more"))
    events = await answer_of(session, script)
    assert text_of(events) == "Hi"
    assert finish_of(events).reason == "stop"


async def test_an_error_after_the_finish_reason_does_not_take_the_answer_away(session):
    events = await answer_of(session, stream_of(delta("Hi", "stop"), {"error": "late", "error_type": "generation"}))
    assert finish_of(events).reason == "stop"


async def test_the_end_marker_inside_an_answer_is_text(session):
    events = await answer_of(
        session, stream_of(delta("data: [DONE]\n\n"), delta("[DONE]"), delta("", "stop"), "[DONE]")
    )
    assert text_of(events) == "data: [DONE]\n\n[DONE]"


@pytest.mark.parametrize(
    "text", ["a\u2028b\u2029c\x85d\x0b\x0c\x1c\x1d\x1ee", " ", "\n", "\r\n", "\ufeff", "👩\u200d💻", "终"]
)
async def test_unusual_text_passes_unchanged(session, text):
    events = await answer_of(session, stream_of(delta(text), delta(text, "stop"), "[DONE]"))
    assert text_of(events) == text * 2


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        ([r"\ud83c\udf78"], "🍸"),
        ([r"\ud83c", r"\udf78"], "🍸"),
        ([r"x\ud83c", "", r"\udf78y"], "x🍸y"),
        ([r"\ud83c", "z"], "\ufffdz"),
        ([r"\udf78"], "\ufffd"),
        ([r"a\ud83c"], "a\ufffd"),
        ([r"a\u0000b"], "a\ufffdb"),
    ],
)
async def test_what_cannot_be_stored_becomes_a_replacement_character(session, escaped, text):
    frames = [json.dumps(delta("TEXT")).replace("TEXT", piece) for piece in escaped]
    events = await answer_of(session, stream_of(*frames, delta("", "stop"), "[DONE]"))
    assert text_of(events) == text


@pytest.mark.parametrize("size", [65_537, 131_073, 524_289, 1_048_577, 3_000_000])
async def test_a_very_long_frame_is_read(session, size):
    events = await answer_of(session, stream_of(delta("x" * size), delta("", "stop"), "[DONE]"))
    assert text_of(events) == "x" * size


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
async def test_an_answer_survives_a_cut_at_any_byte(session, line_end):
    stream = b"".join(map(event, [delta("é🍸"), delta("\u2028", "stop"), usage(5, 2), "[DONE]"]))
    stream = (b":\n\n" + stream).replace(b"\n", line_end)
    cuts = iter(range(1, len(stream)))

    async def script(exchange):
        cut = next(cuts)
        await exchange.start_stream()
        await exchange.send(stream[:cut])
        await exchange.send(stream[cut:])
        await exchange.end()

    async with scripted_server(script) as server:
        client = TGIClient(server.url, session=session)
        for _ in range(1, len(stream)):
            assert await ask(client) == [Piece("é🍸", 1), Piece("\u2028", 1), Finished("stop", 5, None, 2)]


@pytest.mark.parametrize(
    "pieces", [["one STOP"], ["one S", "TOP"], ["one ", "S", "T", "O", "P"], ["one STOP\n"], ["one ", "STOP"]]
)
async def test_a_stop_string_is_not_shown(session, pieces):
    frames = [delta(piece) for piece in pieces[:-1]] + [delta(pieces[-1], "stop_sequence")]
    script = stream_of(*frames, usage(5, len(pieces)), "[DONE]")
    events = await answer_of(session, script, request(stop=("STOP", "never")))
    assert text_of(events) == "one "
    assert finish_of(events) == Finished("stop", 5, None, len(pieces))


async def test_text_that_only_began_like_a_stop_string_is_shown_at_the_end(session):
    events = await answer_of(
        session, stream_of(delta("one "), delta("STO", "length"), "[DONE]"), request(stop=("STOP",))
    )
    assert text_of(events) == "one STO"
    assert sum(event.token_count for event in events[:-1]) == 2


async def test_a_stop_string_that_the_server_missed_ends_the_answer(session):
    """TGI overlooks a stop string that ends within a token, and goes on."""

    async def script(exchange):
        await exchange.start_stream()
        await exchange.send_frames(delta("one ST"), delta("OP two"))
        await exchange.wait_until_closed()

    events = await answer_of(session, script, request(stop=("STOP",)))
    assert text_of(events) == "one "
    assert finish_of(events) == Finished("stop", None, None, 2)


async def test_an_answer_ends_at_the_token_limit_even_if_the_server_goes_on(session):
    """TGI rounds limits above 1024 tokens up."""

    async def script(exchange):
        await exchange.start_stream()
        await exchange.send_frames(*[delta("x")] * 1500)
        await exchange.wait_until_closed()

    events = await answer_of(session, script, request(max_new_tokens=1500))
    assert text_of(events) == "x" * 1500
    assert finish_of(events) == Finished("length", None, None, 1500)


async def test_more_tokens_than_were_asked_for_are_not_paid(session):
    script = stream_of(delta("One"), delta(" two", "stop"), usage(9, 900_000_000), "[DONE]")
    assert finish_of(await answer_of(session, script, request(max_new_tokens=50))) == Finished("stop", 9, None, 2)


async def test_frames_beyond_the_token_limit_are_not_shown(session):
    events = await answer_of(session, stream_of(*[delta("x")] * 9), request(max_new_tokens=4))
    assert text_of(events) == "xxxx"
    assert finish_of(events).reason == "length"


@pytest.mark.parametrize(
    ("partial", "pieces", "continuation"),
    [("One\n\n", ["\n", "\n", "Two"], "Two"), ("One\n\n", ["Two"], "Two"), ("One", [" two"], " two")],
)
async def test_a_continued_answer_repeats_no_whitespace(session, partial, pieces, continuation):
    script = stream_of(*map(delta, pieces), delta("", "stop"), usage(9, len(pieces) + 1), "[DONE]")
    events = await answer_of(session, script, request("Count", partial=partial))
    assert text_of(events) == continuation
    assert sum(event.token_count for event in events[:-1]) == len(pieces)


async def test_whitespace_at_the_beginning_of_a_new_answer_is_kept(session):
    events = await answer_of(session, stream_of(delta("\n"), delta("Hi", "stop"), "[DONE]"), request("Hello\n"))
    assert text_of(events) == "\nHi"
