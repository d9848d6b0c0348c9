import json

import pytest

from inference.testing.answers import expected_answer
from tests.inference.conformance.raw_http import get, open_post, post
from tests.inference.twin.conftest import chat_text, directive

TEXT = "one two three four five six"


def struck(kind: str, **fields) -> str:
    return directive(text=TEXT, fault={"kind": kind, **fields})


# --- before the headers


@pytest.mark.parametrize(("how", "ended"), [("rst", "reset"), ("fin", "fin")])
async def test_a_disconnect_sends_no_byte(say, how, ended):
    response = await say(struck("disconnect", how=how))
    assert (response.status, response.ended) == (0, ended)


@pytest.mark.parametrize(
    ("kind", "status", "content_type", "part"),
    [
        ("plain_422", 422, "text/plain; charset=utf-8", b"Failed to deserialize"),
        ("html_502", 502, "text/html", b"<html>"),
        ("empty_401", 401, None, b""),
        ("overloaded_429", 429, "application/json", b'"error_type":"overloaded"'),
    ],
)
async def test_a_refusal_has_its_status_and_its_body(say, kind, status, content_type, part):
    response = await say(struck(kind))
    assert response.status == status
    assert part in response.body
    if content_type:
        assert response.headers["content-type"].startswith(content_type)
    else:
        assert response.body == b""


async def test_a_status_fault_answers_whatever_is_asked_for(say):
    response = await say(struck("status", status=503, body="busy", content_type="text/weird"))
    assert (response.status, response.body, response.headers["content-type"]) == (503, b"busy", "text/weird")


async def test_stalled_headers_never_come(twin):
    connection = await open_post(twin.url, "/generate", {"inputs": struck("stall_headers")})
    await twin.wait_for(lambda ledger: len(ledger.open_records) == 1)
    await connection.close()
    await twin.wait_for(lambda ledger: not ledger.open_records)
    assert twin.records[0].closed_by == "client"


async def test_delayed_headers_come_in_the_end(say):
    assert chat_text(await say(struck("delay_headers", ms=20))) == TEXT


async def test_a_wrong_content_type_carries_the_right_stream(say):
    response = await say(struck("wrong_content_type", content_type="text/html"))
    assert response.headers["content-type"] == "text/html"
    assert chat_text(response) == TEXT


# --- errors and ends


@pytest.mark.parametrize("error_type", ["overloaded", "generation", "incomplete_generation_stream", "validation"])
@pytest.mark.parametrize("after", [0, 2])
async def test_an_error_frame_ends_the_stream_where_it_was_asked_for(twin, error_type, after):
    prompt = struck("error", error_type=error_type, after=after)
    response = await post(twin.url, "/generate_stream", {"inputs": prompt})
    *tokens, error = response.frames()
    assert len(tokens) == after
    assert error["error_type"] == error_type
    assert (response.status, response.ended) == (200, "complete")


async def test_an_error_in_a_chat_stream_claims_422_and_is_followed_by_done(say):
    response = await say(struck("error", error_type="overloaded", after=1))
    assert json.loads(response.events()[-2]) == {"error": {"message": "Model is overloaded", "http_status_code": 422}}
    assert response.events()[-1] == "[DONE]"


@pytest.mark.parametrize(
    ("error_type", "status"), [("overloaded", 429), ("generation", 424), ("incomplete_generation", 500)]
)
async def test_an_error_of_a_document_has_its_status(say, error_type, status):
    response = await say(struck("error", error_type=error_type), stream=False)
    assert (response.status, response.json()["error_type"]) == (status, error_type)


@pytest.mark.parametrize(("how", "ended"), [("rst", "reset"), ("fin", "fin")])
async def test_a_cut_comes_after_the_token_asked_for(twin, say, how, ended):
    response = await say(struck("cut", after=3, how=how))
    assert response.ended == ended
    assert (twin.records[0].closed_by, twin.records[0].outcome, twin.records[0].tokens_sent) == ("server", "cut", 3)
    if how == "fin":
        assert chat_text(response) == "one two three"


async def test_a_cut_in_a_character_leaves_half_of_it(say):
    prompt = directive(text="ab 🤗 c", fault={"kind": "cut_mid_character", "how": "fin"})
    response = await say(prompt)
    assert response.body.endswith("🤗".encode()[:1])
    assert response.ended == "fin"


async def test_a_clean_end_has_no_final_frame(say):
    response = await say(struck("clean_end", after=2))
    assert response.ended == "complete"
    assert response.events()[-1] != "[DONE]"
    assert chat_text(response) == "one two"


async def test_an_unterminated_end_lacks_the_blank_line(say):
    response = await say(struck("unterminated_end"))
    assert response.body.endswith(b"data: [DONE]")


async def test_an_extra_frame_comes_after_the_final_one(twin):
    response = await post(twin.url, "/generate_stream", {"inputs": struck("extra_frame")})
    *_, final, extra = response.frames()
    assert final["generated_text"] == TEXT
    assert extra["token"]["text"] == " extra"


# --- silence


async def test_a_stalled_stream_goes_on_when_it_is_released(twin):
    connection = await open_post(twin.url, "/generate_stream", {"inputs": struck("stall", after=2)})
    await connection.read_head()
    await connection.read_events(2)
    await twin.wait_for(lambda ledger: ledger.records[0].is_held)
    assert twin.records[0].tokens_sent == 2
    assert twin.release() == 1
    response = await connection.read_all()
    assert response.frames()[-1]["generated_text"] == TEXT
    await connection.close()


async def test_a_stall_keeps_the_connection_alive_unless_told_otherwise(twin):
    twin.change(keep_alive_ms=5)
    silent = await open_post(twin.url, "/generate_stream", {"inputs": struck("stall", after=1, keep_alive=False)})
    alive = await open_post(twin.url, "/generate_stream", {"inputs": directive(text="a b", fault={"kind": "stall"})})
    await silent.read_head()
    await alive.read_head()
    await alive.read_until(b":\n\n:\n\n:\n\n")
    await twin.wait_for(lambda ledger: all(record.is_held for record in ledger.records))
    twin.release()
    assert b"\n\n:" not in (await silent.read_all()).body
    await silent.close()
    await alive.close()


async def test_a_stall_with_an_end_goes_on_by_itself(say):
    assert chat_text(await say(struck("stall", after=2, ms=10))) == TEXT
    assert chat_text(await say(struck("stall", after=3, ms=10, keep_alive=False))) == TEXT


async def test_keep_alives_can_be_all_that_comes(twin):
    connection = await open_post(twin.url, "/generate_stream", {"inputs": struck("keep_alives_only", ms=1)})
    await connection.read_head()
    await connection.read_until(b":\n\n" * 5)
    assert b"data" not in connection.response.body
    await connection.close()
    await twin.wait_for(lambda ledger: not ledger.open_records)


async def test_a_wedged_twin_is_healthy(twin):
    twin.switch_on("stall")
    connection = await open_post(twin.url, "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})
    await twin.wait_for(lambda ledger: any(record.is_held for record in ledger.records))
    assert (await get(twin.url, "/health")).status == 200
    await connection.close()


# --- the bytes


async def test_a_delayed_first_token_is_followed_by_the_others(say):
    assert chat_text(await say(struck("delay_first_token", ms=20))) == TEXT


@pytest.mark.parametrize("fields", [{"bytes": 7}, {"bytes": 100_000}, {"ms": 0}])
async def test_split_frames_join_to_the_same_bytes(say, fields):
    response = await say(struck("split", **fields))
    assert chat_text(response) == TEXT
    assert len(response.chunks) > len(response.events()) or fields == {"bytes": 100_000}
    if fields == {"ms": 0}:
        assert {len(chunk) for chunk in response.chunks} == {1}


async def test_a_slow_drip_comes_in_parts_of_the_size_asked_for(say):
    response = await say(struck("drip", bytes=50, ms=1))
    assert chat_text(response) == TEXT
    assert max(len(chunk) for chunk in response.chunks) == 50


async def test_coalesced_frames_share_a_write(say):
    response = await say(struck("coalesce", count=2))
    assert chat_text(response) == TEXT
    assert response.chunks[0].count(b"data: ") == 2


async def test_garbage_comes_between_good_frames(twin):
    response = await post(twin.url, "/generate_stream", {"inputs": struck("garbage", after=1)})
    broken = response.events()[1]
    with pytest.raises(json.JSONDecodeError):
        json.loads(broken)
    assert json.loads(response.events()[-1])["generated_text"] == TEXT


async def test_invalid_utf8_is_in_one_frame_only(say):
    response = await say(struck("invalid_utf8", after=1))
    assert response.body.count(b"\xff") == 1


@pytest.mark.parametrize(("ending", "newline"), [("cr", b"\r"), ("crlf", b"\r\n")])
async def test_line_endings_can_be_others(say, ending, newline):
    response = await say(struck("line_ending", ending=ending))
    assert response.body.endswith(b"data: [DONE]" + newline * 2)
    assert response.body.replace(newline, b"").count(b"\n") == 0


async def test_the_space_behind_the_colon_can_be_missing(say):
    response = await say(struck("no_space"))
    assert b"data:{" in response.body
    assert b"data: " not in response.body


async def test_a_byte_order_mark_opens_the_stream(say):
    response = await say(struck("byte_order_mark"))
    assert response.body.startswith(b"\xef\xbb\xbfdata: ")
    assert response.body.count(b"\xef\xbb\xbf") == 1


async def test_a_frame_can_be_padded_to_a_mebibyte_without_changing_the_text(say):
    response = await say(struck("padded_frame", after=1))
    assert max(len(event) for event in response.events()) > 1 << 20
    assert chat_text(response) == TEXT


# --- the tokens


async def test_a_token_can_be_a_mebibyte(say):
    response = await say(struck("huge_token", after=1))
    assert chat_text(response).startswith("one" + "x" * (1 << 20))


async def test_a_lone_surrogate_and_a_nul_come_as_json_escapes(say):
    assert rb"\ud83c" in (await say(struck("lone_surrogate", after=1))).body
    assert rb"\u0000" in (await say(struck("nul", after=1))).body


@pytest.mark.parametrize(
    ("kind", "indexes"),
    [("duplicate_index", [1, 2, 2, 4]), ("skipped_index", [1, 2, 4, 5]), ("missing_index", [1, 2, None, 4])],
)
async def test_indexes_can_be_wrong(twin, kind, indexes):
    response = await post(twin.url, "/generate_stream", {"inputs": struck(kind, after=2)})
    assert [frame.get("index") for frame in response.frames()][:4] == indexes


async def test_the_finish_reason_can_be_unknown(say):
    response = await say(struck("finish_reason", reason="moon"))
    assert response.frames()[-1]["choices"][0]["finish_reason"] == "moon"


# --- whom they strike


async def test_a_prompts_fault_strikes_once_and_the_retry_is_undisturbed(say):
    prompt = struck("cut", after=1)
    assert (await say(prompt)).ended == "reset"
    assert chat_text(await say(prompt)) == TEXT


async def test_a_prompts_fault_strikes_as_often_as_it_says(say):
    prompt = struck("clean_end", after=1, times=2)
    assert [chat_text(await say(prompt)) for _ in range(3)] == ["one", "one", TEXT]


async def test_a_prompts_fault_spares_continuations_unless_told_otherwise(say):
    assert chat_text(await say(struck("clean_end", after=1, always=True), partial="one")) == " two three four five six"
    prompt = struck("clean_end", after=1, always=True, continuations=True)
    assert chat_text(await say(prompt, partial="one")) == " two"


async def test_a_cut_answer_continued_is_the_undisturbed_one(say):
    prompt = directive(tokens=40, fault={"kind": "cut", "after": 23, "how": "fin"})
    begun = chat_text(await say(prompt))
    rest = chat_text(await say(prompt, partial=begun))
    assert begun.rstrip() + rest == expected_answer(prompt)


async def test_a_standing_fault_strikes_until_it_is_switched_off(twin, say):
    fault = twin.switch_on("clean_end", after=1, match="strike")
    assert chat_text(await say("spare me")) == expected_answer("spare me", answer_tokens=8)
    for _ in range(2):
        assert len(expected_answer("strike me", answer_tokens=8)) > len(chat_text(await say("strike me")))
    twin.switch_off(fault)
    assert chat_text(await say("strike me")) == expected_answer("strike me", answer_tokens=8)


async def test_faults_add_up(say):
    prompt = directive(text=TEXT, faults=[{"kind": "line_ending", "ending": "crlf"}, {"kind": "clean_end", "after": 1}])
    response = await say(prompt)
    assert response.body.count(b"data:") == 1
    assert response.body.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(("kind", "status"), [("status", 404), ("html_502", 502)])
async def test_the_small_routes_can_be_struck_by_their_path(twin, say, kind, status):
    twin.switch_on(kind, path="/metrics", status=404)
    assert (await get(twin.url, "/metrics")).status == status
    assert (await get(twin.url, "/health")).status == 200
    assert chat_text(await say(directive(text="well"))) == "well"


async def test_metrics_can_be_huge(twin):
    twin.switch_on("huge_metrics", path="/metrics", bytes=300_000)
    assert len((await get(twin.url, "/metrics")).body) > 290_000


# --- versions


async def test_an_old_version_has_the_old_shapes(twin, say):
    twin.change(tgi_version="2.0.4")
    response = await say(directive(text="old"))
    assert response.body.startswith(b"data:{")
    assert b"[DONE]" not in response.body
    assert b'"finish_reason":"eos_token"' in response.body
    assert "max_input_length" in (await get(twin.url, "/info")).json()
    stream = await post(twin.url, "/generate_stream", {"inputs": "x", "parameters": {"details": True}})
    last = json.loads(stream.body.split(b"data:")[-1])
    assert "input_length" not in last["details"]
    failed = await say(directive(text="old", fault={"kind": "error"}))
    assert b'"error_type":"generation"' in failed.body
