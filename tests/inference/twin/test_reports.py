import time

import pytest

from inference.testing.running import running_twin
from inference.testing.settings import TwinSettings
from tests.inference.conformance.raw_http import connect, get, open_post, post
from tests.inference.twin.conftest import chat_text, directive

ENDLESS = directive(tokens=100_000, token_ms=5)


def chat(text: str, **more) -> dict:
    return {"messages": [{"role": "user", "content": text}], "stream": True, **more}


async def begun(twin, text: str = ENDLESS, path: str = "/v1/chat/completions"):
    connection = await open_post(twin.url, path, chat(text) if "chat" in path else {"inputs": text})
    await connection.read_head()
    return connection


async def test_a_finished_answer_was_closed_by_the_server(twin, say):
    await say(directive(text="a b"))
    (record,) = twin.records
    assert (record.closed_by, record.outcome, record.tokens_sent) == ("server", "complete", 3)
    assert record.started_monotonic < record.first_token_monotonic <= record.closed_monotonic


async def test_a_client_that_leaves_closes_its_answer_and_frees_its_permit(twin):
    twin.change(permits=1)
    connection = await begun(twin)
    await connection.read_events(3)
    before = time.monotonic()
    await connection.close()
    await twin.wait_for(lambda ledger: not ledger.open_records)
    (record,) = twin.records
    assert (record.closed_by, record.outcome) == ("client", "cancelled")
    assert record.closed_monotonic >= before
    assert (await post(twin.url, "/generate", {"inputs": directive(text="next")})).status == 200


async def test_a_half_closed_client_counts_as_gone(twin):
    connection = await begun(twin)
    connection.writer.write_eof()
    await twin.wait_for(lambda ledger: not ledger.open_records)
    assert twin.records[0].closed_by == "client"
    await connection.close()


async def test_a_cancelled_answer_sends_no_further_token(twin):
    connection = await begun(twin)
    await connection.read_events(2)
    await connection.close()
    await twin.wait_for(lambda ledger: not ledger.open_records)
    sent = twin.records[0].tokens_sent
    other = await begun(twin)
    await other.read_events(10)
    assert twin.records[0].tokens_sent == sent
    await other.close()


async def test_a_twin_that_ignores_disconnects_goes_on_and_keeps_the_permit(twin):
    twin.change(permits=1)
    prompt = directive(tokens=60, faults=[{"kind": "ignore_disconnect"}, {"kind": "stall", "after": 5}])
    connection = await begun(twin, prompt)
    await twin.wait_for(lambda ledger: ledger.records[0].is_held)
    await connection.close()
    await twin.wait_for(lambda ledger: not ledger.open_records)
    refused = await post(twin.url, "/generate_stream", {"inputs": directive(text="next")})
    assert refused.frames()[0]["error_type"] == "overloaded"
    twin.release()
    await twin.wait_for(lambda ledger: ledger.records[0].tokens_sent == 61)
    assert (await post(twin.url, "/generate", {"inputs": directive(text="next")})).status == 200


async def test_a_document_that_nobody_waits_for_is_cancelled(twin):
    connection = await open_post(twin.url, "/generate", {"inputs": ENDLESS})
    await twin.wait_for(lambda ledger: bool(ledger.records))
    await connection.close()
    await twin.wait_for(lambda ledger: not ledger.open_records)
    assert twin.records[0].closed_by == "client"


async def test_a_full_batch_queues_and_a_queued_client_that_leaves_is_skipped(twin):
    twin.change(batch_size=1)
    running, queued = await begun(twin), await begun(twin)
    third = await begun(twin, directive(text="third"))
    report = (await get(twin.url, "/_twin/wait?queued=2&timeout=5")).json()
    assert report["running"] == 1
    await queued.close()
    await running.close()
    assert chat_text(await third.read_all()) == "third"
    assert [record.closed_by for record in twin.records] == ["client", "client", "server"]
    await third.close()


async def test_a_queued_stream_is_kept_alive(twin):
    twin.change(batch_size=1, keep_alive_ms=5)
    running, queued = await begun(twin), await begun(twin)
    await queued.read_until(b":\n\n:\n\n")
    await running.close()
    await queued.read_until(b"data: ")
    await queued.close()


async def test_the_load_can_be_read_from_metrics(twin):
    assert b"tgi_queue_size" not in (await get(twin.url, "/metrics")).body
    connection = await begun(twin)
    await connection.read_events(1)
    assert b"tgi_batch_current_size 1" in (await get(twin.url, "/metrics")).body
    await connection.close()
    await twin.wait_for(lambda ledger: not ledger.open_records)
    assert b"tgi_batch_current_size 0" in (await get(twin.url, "/metrics")).body


async def test_waiting_ends_as_soon_as_the_conditions_hold(twin):
    connection = await begun(twin)
    report = (await get(twin.url, "/_twin/wait?open=1&tokens=3&timeout=5")).json()
    assert report["requests"][0]["tokens_sent"] >= 3
    await connection.close()
    assert (await get(twin.url, "/_twin/wait?open=0&closed_by_client=1&timeout=5")).status == 200


async def test_waiting_for_what_never_comes_says_408(twin):
    assert (await get(twin.url, "/_twin/wait?seen=1&timeout=0.01")).status == 408
    with pytest.raises(TimeoutError):
        await twin.wait_for(lambda ledger: ledger.seen_count == 1, timeout=0.01)


async def test_a_request_can_be_read_as_it_came(twin, say):
    await say("hello", seed=7)
    request = (await get(twin.url, "/_twin/requests/1")).json()
    assert request["body"]["seed"] == 7
    assert request["headers"]["content-type"] == "application/json"
    assert request["prompt"] == "hello"
    assert (await get(twin.url, "/_twin/requests/99")).status == 404


async def test_a_reset_forgets_the_past_and_the_faults(twin, say):
    prompt = directive(text="a b", fault={"kind": "clean_end"})
    assert chat_text(await say(prompt)) == ""
    twin.switch_on("html_502")
    twin.reset()
    assert chat_text(await say(prompt)) == ""
    assert len(twin.records) == 1


async def test_faults_and_settings_can_be_changed_over_http(twin, say):
    switched = await post(twin.url, "/_twin/faults", {"kind": "html_502"})
    assert (await say("x")).status == 502
    deleting = await connect(twin.url, "DELETE", f"/_twin/faults?id={switched.json()['id']}")
    await deleting.read_all()
    await deleting.close()
    assert (await say("x")).status == 200
    assert (await post(twin.url, "/_twin/settings", {"model_id": "other"})).json()["model_id"] == "other"
    assert (await get(twin.url, "/info")).json()["model_id"] == "other"


@pytest.mark.parametrize(
    ("path", "body"),
    [("faults", {"kind": "moon"}), ("faults", {"kind": "cut", "x": 1}), ("settings", {"token_ms": "1"})],
)
async def test_a_wrong_wish_is_refused(twin, path, body):
    assert (await post(twin.url, f"/_twin/{path}", body)).status == 422


async def test_stamps_are_the_machines_monotonic_clock(say):
    before = time.monotonic_ns()
    response = await say(directive(tokens=3, stamp=True))
    stamps = [int(stamp) for stamp in chat_text(response).split()]
    assert len(stamps) == 3
    assert before < stamps[0] < stamps[1] < stamps[2] < time.monotonic_ns()


async def test_refused_connections_are_accepted_again_on_the_same_port(twin):
    await twin.refuse_connections()
    with pytest.raises(ConnectionRefusedError):
        await get(twin.url, "/health")
    assert (await get(twin.control_url, "/_twin/report")).status == 200
    await twin.accept_connections()
    assert (await get(twin.url, "/health")).status == 200


async def test_an_open_answer_outlives_a_refusal(twin):
    connection = await begun(twin, directive(tokens=30))
    await twin.refuse_connections()
    assert (await connection.read_all()).ended == "complete"
    await connection.close()


async def test_answers_under_way_end_with_the_twin():
    async with running_twin(TwinSettings(prefill_ms=0)) as twin:
        connection = await begun(twin)
        await connection.read_events(1)
    assert (await connection.read_all()).ended in ("fin", "reset")
    assert twin.records[0].closed_by == "server"
    await connection.close()


async def test_twins_that_share_their_firings_strike_a_prompt_once_together(tmp_path):
    settings = TwinSettings(prefill_ms=0, token_ms=0, firings_dir=str(tmp_path))
    prompt = directive(text="a b", fault={"kind": "clean_end"})
    async with running_twin(settings) as first, running_twin(settings) as second:
        answers = [await post(twin.url, "/v1/chat/completions", chat(prompt)) for twin in (first, second)]
    assert [chat_text(answer) for answer in answers] == ["", "a b"]
