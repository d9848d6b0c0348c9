"""In virtual time, routing by prefix keeps what it promises in every scenario."""

import pytest

from inference.simulation import scenarios
from inference.simulation.conversations import Conversation, Turn, conversations_of
from inference.simulation.engine import simulate
from inference.simulation.policies import POLICIES
from inference.simulation.replicas import Cache
from inference.simulation.results import table

SMALL = scenarios.of_size(replicas=12, conversations=1_800)


@pytest.mark.parametrize("scenario", SMALL, ids=lambda each: each.title)
def test_follow_ups_are_warm_and_nobody_waits_longer_than_with_the_least_loaded(scenario):
    least, prefix = (simulate(scenario, POLICIES[policy]).figures() for policy in ("least loaded", "prefix"))
    # Where replicas die, some follow-ups find nobody who could be warm.
    assert prefix.warm_share >= min(0.9, 0.95 * prefix.possible_share)
    assert prefix.first_token_p99 <= 1.1 * least.first_token_p99
    assert prefix.answer_p99 <= 1.1 * least.answer_p99
    assert prefix.answers > 1_500


def test_every_answer_is_written_though_replicas_die():
    (scenario,) = (each for each in scenarios.of_size(replicas=5, conversations=300) if each.life_seconds)
    results = simulate(scenario, POLICIES["prefix"])
    assert results.follow_ups > 100
    assert len(results.answer_seconds) > results.follow_ups


def test_the_same_seed_gives_the_same_figures():
    scenario = scenarios.of_size(replicas=4, conversations=200)[0]
    assert simulate(scenario, POLICIES["prefix"]).figures() == simulate(scenario, POLICIES["prefix"]).figures()


def test_every_policy_meets_the_same_conversations():
    def told(each):
        return each.begins, each.system_prompt, [(turn.question_tokens, turn.think_seconds) for turn in each.turns]

    scenario = scenarios.of_size(replicas=4, conversations=50)[1]
    assert [told(each) for each in conversations_of(scenario)] == [told(each) for each in conversations_of(scenario)]


def test_a_cache_evicts_the_end_of_what_was_used_longest_ago_first():
    cache = Cache(most_tokens=100)
    cache.store([(1, 40), (2, 30)])
    cache.store([(1, 40), (3, 50)])
    assert cache.held_tokens([(1, 40), (2, 30)]) == 40
    assert cache.held_tokens([(1, 40), (3, 60)]) == 90
    cache.clear()
    assert cache.held_tokens([(1, 40)]) == 0


def test_the_router_is_given_prefixes_that_grow_and_are_shared_as_prompts_are():
    def conversation(number):
        turns = [Turn(50, 400, 0.0), Turn(50, 400, 0.0)]
        return Conversation(number, 0.0, system_prompt=3, system_tokens=300, turns=turns, asked=1)

    one, other = conversation(1), conversation(2)
    first = one.prefix()
    assert len(first) == 1_400 // 512
    assert first == other.prefix()
    one.asked = other.asked = 2
    assert one.prefix()[:2] == other.prefix()[:2] == first
    assert not set(one.prefix()[2:]) & set(other.prefix()[2:])


def test_the_table_compares_with_the_least_loaded():
    scenario = scenarios.of_size(replicas=4, conversations=200)[0]
    by_policy = {policy: simulate(scenario, POLICIES[policy]).figures() for policy in POLICIES}
    lines = table([(scenario.title, by_policy)], "least loaded").splitlines()
    assert len(lines) == 2 + len(POLICIES)
    assert "| 1.00, 1.00 |" in lines[2]
    assert len({line.count("|") for line in lines}) == 1
