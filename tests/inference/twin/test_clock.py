import asyncio

from inference.testing.clock import Clock


class Bell:
    """Notes its rings, and sets itself anew as often as it is told."""

    def __init__(self, clock: Clock, name: str, rings: list[str], *, again: int = 0):
        self.clock, self.name, self.rings, self.again, self.due = clock, name, rings, again, 0.0
        self.finished = asyncio.Event()

    def ring(self) -> None:
        self.rings.append(self.name)
        if self.again == 0:
            self.finished.set()
            return
        self.again -= 1
        self.clock.set(self, self.due + 0.0004)


async def test_alarms_ring_in_the_order_of_their_times():
    clock, rings = Clock(), []
    late, early = Bell(clock, "late", rings), Bell(clock, "early", rings)
    now = clock.time()
    clock.set(late, now + 0.02)
    clock.set(early, now + 0.01)
    async with asyncio.timeout(5):
        await late.finished.wait()
    assert rings == ["early", "late"]


async def test_an_alarm_set_anew_rings_only_at_its_new_time():
    clock, rings = Clock(), []
    moved, other = Bell(clock, "moved", rings), Bell(clock, "other", rings)
    now = clock.time()
    clock.set(moved, now + 0.005)
    clock.set(other, now + 0.01)
    clock.set(moved, now + 0.02)
    async with asyncio.timeout(5):
        await moved.finished.wait()
    assert rings == ["other", "moved"]


async def test_alarms_closer_than_a_bucket_lose_no_time():
    clock, rings = Clock(), []
    bell = Bell(clock, "ring", rings, again=50)
    started = clock.time()
    clock.set(bell, started)
    async with asyncio.timeout(5):
        await bell.finished.wait()
    assert len(rings) == 51
    assert abs(bell.due - started - 50 * 0.0004) < 1e-6


async def test_more_alarms_than_a_turn_serves_all_ring_once():
    clock, rings = Clock(), []
    bells = [Bell(clock, str(number), rings) for number in range(500)]
    due = clock.time() + 0.002
    for bell in bells:
        clock.set(bell, due)
    async with asyncio.timeout(5):
        await asyncio.gather(*(bell.finished.wait() for bell in bells))
    assert sorted(rings) == sorted(bell.name for bell in bells)


async def test_a_stopped_clock_rings_nothing():
    clock, rings = Clock(), []
    silent, sounding = Bell(clock, "silent", rings), Bell(clock, "sounding", rings)
    clock.set(silent, clock.time() + 0.001)
    clock.stop()
    clock.set(sounding, clock.time() + 0.01)
    async with asyncio.timeout(5):
        await sounding.finished.wait()
    assert rings == ["sounding"]
