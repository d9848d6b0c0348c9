"""A request can be given up by someone else than its reader, who is told at once."""

import asyncio
from contextlib import aclosing

import pytest

from inference.events import Piece
from inference.openai_compatible import OpenAICompatibleClient
from inference.testing.running import running_twin
from inference.testing.settings import TwinSettings
from inference.tgi.client import TGIClient, model_session
from inference.tgi.errors import Stalled
from inference.watch import Watch
from tests.inference.core.waiting import until
from tests.inference.tgi.asking import request
from tests.inference.tgi.scripted_server import delta, scripted_server

CLIENTS = pytest.mark.parametrize(("dialect", "client_class"), [("tgi", TGIClient), ("openai", OpenAICompatibleClient)])


async def read(client, watch, events):
    async with aclosing(client.stream_chat(request("Hello"), watch)) as stream:
        async for event in stream:
            events.append(event)


@CLIENTS
@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "stall_headers"},
        {"kind": "stall", "after": 0},
        {"kind": "stall", "after": 4},
        {"kind": "keep_alives_only", "ms": 5},
    ],
    ids=str,
)
async def test_an_abandoned_request_is_closed_and_its_reader_told(dialect, client_class, fault):
    events = []
    async with running_twin(TwinSettings(dialect=dialect, token_ms=1)) as twin, model_session() as session:
        twin.switch_on(**fault)
        watch = Watch()
        reading = asyncio.create_task(read(client_class(twin.url, session=session), watch, events))
        await twin.wait_for(lambda ledger: ledger.records)
        await until(lambda: not fault.get("after") or any(isinstance(event, Piece) for event in events))
        watch.abandon()
        with pytest.raises(Stalled):
            await reading
        await twin.wait_for(lambda ledger: not ledger.open_records)
        assert twin.records[0].closed_by == "client"
    assert watch.has_begun == bool(fault.get("after"))


@CLIENTS
async def test_a_request_that_was_abandoned_before_it_went_out_is_not_answered(dialect, client_class):
    async with running_twin(TwinSettings(dialect=dialect)) as twin, model_session() as session:
        watch = Watch()
        watch.abandon()
        with pytest.raises(Stalled):
            await read(client_class(twin.url, session=session), watch, [])


@CLIENTS
async def test_an_answer_under_way_tells_of_its_progress(dialect, client_class):
    async with running_twin(TwinSettings(dialect=dialect, token_ms=1)) as twin, model_session() as session:
        watch, began = Watch(prefill_seconds=5), asyncio.get_running_loop().time()
        assert watch.silent_seconds(began + 6) == pytest.approx(1, abs=0.1)
        await read(client_class(twin.url, session=session), watch, [])
        assert watch.frames >= 10
        assert watch.silent_seconds(watch.progressed_at + 6) == pytest.approx(6)
        watch.abandon()


@pytest.mark.parametrize("client_class", [TGIClient, OpenAICompatibleClient])
async def test_frames_without_a_token_are_no_progress(client_class):
    async def script(exchange):
        await exchange.start_stream()
        await exchange.send_frames(*[{"choices": []}] * 100, delta("Hi"))
        await exchange.wait_until_closed()

    events, watch = [], Watch()
    async with scripted_server(script) as server, model_session() as session:
        reading = asyncio.create_task(read(client_class(server.url, session=session), watch, events))
        await until(lambda: events)
        watch.abandon()
        with pytest.raises(Stalled):
            await reading
    assert watch.frames == 1
