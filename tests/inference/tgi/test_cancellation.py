"""Closing an answer closes its connection at once, and nothing else."""

import asyncio
from contextlib import aclosing, suppress

import pytest

from inference.events import Piece
from inference.tgi.client import TGIClient, Timeouts
from tests.inference.tgi.asking import ask, request
from tests.inference.tgi.scripted_server import delta, scripted_server, stream_of, usage


async def endless(exchange):
    await exchange.start_stream()
    await exchange.send_frames(delta("Hi"))
    await exchange.wait_until_closed()


async def silent(exchange):
    await exchange.wait_until_closed()


async def headers_only(exchange):
    await exchange.start_stream()
    await exchange.wait_until_closed()


async def talkative(exchange):
    await exchange.start_stream()
    await exchange.send_repeatedly(b": x\n\n", every_seconds=0.01)


async def test_closing_an_answer_closes_its_connection(session):
    async with scripted_server(endless) as server:
        async with aclosing(TGIClient(server.url, session=session).stream_chat(request())) as events:
            assert await anext(events) == Piece("Hi", 1)
        await server.wait_until_closed()


@pytest.mark.parametrize("script", [silent, headers_only, endless, talkative])
async def test_cancelling_the_task_closes_the_connection_in_every_phase(session, script):
    async with scripted_server(script) as server:
        task = asyncio.create_task(ask(TGIClient(server.url, session=session)))
        await server.wait_until_asked()
        task.cancel()
        await server.wait_until_closed()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_an_error_in_the_caller_closes_the_connection(session):
    async with scripted_server(endless) as server:
        async with aclosing(TGIClient(server.url, session=session).stream_chat(request())) as events:
            await anext(events)
            with pytest.raises(LookupError):
                await events.athrow(LookupError)
        await server.wait_until_closed()


async def test_an_answer_that_is_never_begun_opens_no_connection(session):
    async with scripted_server(endless) as server:
        async with aclosing(TGIClient(server.url, session=session).stream_chat(request())):
            pass
        assert server.connections == 0


async def test_closing_one_answer_leaves_the_others_and_the_session_alone(session):
    go_on = asyncio.Event()

    async def script(exchange):
        if exchange.body["messages"][0]["content"] == "stop me":
            await endless(exchange)
            return
        await exchange.start_stream()
        await exchange.send_frames(delta("Hi"))
        await go_on.wait()
        await exchange.send_frames(delta(" there", "stop"), "[DONE]")
        await exchange.end()

    async with scripted_server(script) as server:
        client = TGIClient(server.url, session=session)
        async with (
            aclosing(client.stream_chat(request("go on"))) as kept,
            aclosing(client.stream_chat(request("stop me"))) as stopped,
        ):
            assert await anext(kept) == Piece("Hi", 1)
            assert await anext(stopped) == Piece("Hi", 1)
            await stopped.aclose()
            await server.wait_until(lambda: server.open_connections == 1)
            go_on.set()
            assert await anext(kept) == Piece(" there", 1)
        assert (await ask(client, request("again")))[0] == Piece("Hi", 1)


async def test_a_finished_answer_leaves_its_connection_for_the_next(session):
    async with scripted_server(stream_of(delta("Hi", "stop"), usage(5, 1), "[DONE]")) as server:
        client = TGIClient(server.url, session=session)
        for _ in range(5):
            await ask(client)
        assert len(server.exchanges) == 5
        assert server.connections == 1


async def test_a_connection_is_kept_even_if_the_body_ends_a_little_after_the_last_event(session):
    async def script(exchange):
        await exchange.start_stream()
        await exchange.send_frames(delta("Hi", "stop"), "[DONE]")
        for _ in range(10):  # the client has read the last event by then
            await asyncio.sleep(0)
        await exchange.end()

    async with scripted_server(script) as server:
        client = TGIClient(server.url, session=session)
        for _ in range(3):
            await ask(client)
        assert server.connections == 1


async def test_an_answer_that_is_read_to_its_finish_leaves_its_connection_even_if_it_is_closed_there(session):
    async with scripted_server(stream_of(delta("Hi", "stop"), usage(5, 1), "[DONE]")) as server:
        client = TGIClient(server.url, session=session)
        for _ in range(5):
            async with aclosing(client.stream_chat(request())) as events:
                await anext(events)
                await anext(events)
        assert server.connections == 1


async def test_a_slow_caller_is_no_stall(session):
    """The time a caller takes between two pieces is not the server's."""
    wants_more = asyncio.Event()

    async def script(exchange):
        await exchange.start_stream()
        await exchange.send_frames(delta("Hi"))
        await wants_more.wait()
        await exchange.send_frames(delta(" there", "stop"), "[DONE]")
        await exchange.end()

    async with scripted_server(script) as server:
        client = TGIClient(server.url, session=session, timeouts=Timeouts(token_seconds=0.5))
        async with aclosing(client.stream_chat(request())) as events:
            assert await anext(events) == Piece("Hi", 1)
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 0.6)
            wants_more.set()
            assert await anext(events) == Piece(" there", 1)


async def test_a_hundred_cancelled_answers_leak_nothing(session):
    async with scripted_server(endless) as server:
        client = TGIClient(server.url, session=session)
        tasks = [asyncio.create_task(ask(client)) for _ in range(100)]
        await server.wait_until_asked(100)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_until_closed()
        assert all(task.cancelled() for task in tasks)
