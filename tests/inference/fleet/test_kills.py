"""Model servers that die while they write."""

import random

from tests.inference.fleet.killing import answer_while_killing, processes
from tests.inference.fleet.replicas import fleet_of


async def test_answers_survive_the_death_of_their_replica_to_the_byte():
    with processes(3) as twins:
        async with fleet_of(*twins) as fleet:
            toll = await answer_while_killing(fleet, random.Random(7), answers=12, at_once=4)
    assert not toll.wrong
    assert toll.kills == 12
    assert toll.moves
