import asyncio
from itertools import repeat

from inference.testing.clock import Clock
from inference.testing.ledger import Ledger
from inference.testing.player import Ending, Player
from inference.testing.script import Step
from inference.testing.wire import Wire

BLOCK = b"x" * (1 << 14)


class Alarm:
    """An alarm that can be awaited."""

    def __init__(self) -> None:
        self.due = 0.0
        self.rang = asyncio.Event()

    def ring(self) -> None:
        self.rang.set()


def a_record():
    return Ledger().open("/generate_stream", "prompt", {}, {}, is_continuation=False)


async def test_a_reader_who_does_not_read_makes_the_player_wait():
    async def ignore(_reader, writer):
        await gone.wait()
        writer.close()

    gone = asyncio.Event()
    async with await asyncio.start_server(ignore, "127.0.0.1", 0, limit=1024) as server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        clock, record, wire = Clock(), a_record(), Wire(writer.transport)
        player = Player(clock, wire, record, set(), keep_alive_ms=1_000)
        try:
            player.play(repeat(Step(BLOCK, token_count=1)))
            assert await record.ledger.wait_for(lambda _: wire.is_backed_up, timeout_s=10)
            later = Alarm()
            clock.set(later, clock.time() + 0.05)
            await later.rang.wait()
            assert record.tokens_sent * len(BLOCK) < 24 << 20
        finally:
            player.end(Ending.ABANDONED)
            gone.set()
            writer.transport.abort()


async def test_an_abandoned_player_sends_nothing_more():
    record, clock = a_record(), Clock()
    player = Player(clock, Wire(None), record, set(), keep_alive_ms=1_000)
    player.play(repeat(Step(b"x", 1.0, 1)))
    assert await record.ledger.wait_for(lambda _: record.tokens_sent >= 3, timeout_s=5)
    player.end(Ending.ABANDONED)
    sent = record.tokens_sent
    later = Alarm()
    clock.set(later, clock.time() + 0.02)
    await later.rang.wait()
    assert record.tokens_sent == sent
    assert player.done.result() is Ending.ABANDONED


async def test_a_script_that_runs_out_is_complete():
    clock, record = Clock(), a_record()
    player = Player(clock, Wire(None), record, set(), keep_alive_ms=1_000)
    player.play(iter([Step(b"a", 1.0, 1), Step(b"b", 0.0, 1)]))
    async with asyncio.timeout(5):
        assert await player.done is Ending.COMPLETE
    assert record.tokens_sent == 2
