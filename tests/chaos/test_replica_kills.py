"""`kill -9` of the model server that writes an answer, at a random token of each of many: all come out whole."""

import os
import random
import statistics

import pytest

from inference.fleet import DEFAULT_PACE
from inference.tgi.transport import DEFAULT_TIMEOUTS
from tests.inference.fleet.killing import answer_while_killing, processes
from tests.inference.fleet.replicas import fleet_of

KILLS = int(os.environ.get("CHAOS_KILLS", "200"))
SEED = int(os.environ.get("CHAOS_SEED", "20"))
AT_ONCE = 2
"""Fewer than there are replicas: one of the three is always there."""

pytestmark = pytest.mark.timeout(1800)


async def test_every_answer_survives_the_death_of_its_replica_to_the_byte():
    with processes(3) as twins:
        async with fleet_of(*twins, pace=DEFAULT_PACE, timeouts=DEFAULT_TIMEOUTS) as fleet:
            toll = await answer_while_killing(fleet, random.Random(SEED), answers=KILLS, at_once=AT_ONCE)
    assert not toll.wrong
    assert toll.kills == KILLS
    silences = sorted(toll.longest_silence_seconds)
    print(
        f"{toll.kills} kills, {KILLS} answers byte for byte, {toll.moves} moves; longest silence of an answer: "
        f"p50 {statistics.median(silences):.2f} s, p95 {silences[int(len(silences) * 0.95)]:.2f} s, "
        f"max {silences[-1]:.2f} s"
    )
