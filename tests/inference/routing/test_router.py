"""Requests go where their prefix is, unless there is too much to do."""

import math
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.router import MOST_ORDERED, Candidate, Router

PREFIX = tuple(range(100, 120))


def fleet(*in_flight, permits=16, weight=1.0):
    return [
        Candidate(f"http://{name}", busy, permits, weight)
        for name, busy in zip("abcdefghijkl", in_flight, strict=False)
    ]


CANDIDATES = st.lists(
    st.tuples(st.floats(0, 20), st.integers(0, 16), st.sampled_from([0.0, 0.5, 1.0, 4.0])), max_size=40
).map(lambda rows: [Candidate(f"http://{index}", *row) for index, row in enumerate(rows)])
PREFIXES = st.lists(st.integers(0, 2**56 - 1), max_size=10).map(tuple)


@given(CANDIDATES, PREFIXES, st.integers(0, 50))
def test_an_order_names_the_best_candidates_once_and_full_ones_last(candidates, prefix, hinted):
    router = Router()
    router.note("http://3", prefix)
    router.note("http://gone", prefix)
    ordered = router.order(candidates, prefix, hint=f"http://{hinted}")
    assert len(ordered) == len(set(ordered)) == min(MOST_ORDERED, len(candidates))
    by_url = {each.url: each for each in candidates}
    is_full = [by_url[url].in_flight >= by_url[url].permits for url in ordered]
    assert is_full == sorted(is_full)
    free = sum(each.in_flight < each.permits for each in candidates)
    assert is_full.count(False) == min(free, len(ordered))


def test_a_follow_up_goes_to_the_replica_that_holds_its_prefix():
    router = Router()
    router.note("http://c", PREFIX[:15])
    assert router.order(fleet(0, 0, 3, 0), PREFIX)[0] == "http://c"


def test_who_holds_more_of_the_prefix_comes_first():
    router = Router()
    router.note("http://b", PREFIX[:5])
    router.note("http://c", PREFIX)
    assert router.order(fleet(0, 0, 1), PREFIX)[:2] == ["http://c", "http://b"]


@pytest.mark.parametrize(("least", "most"), [(0, 9), (2, 13), (5, 19)])
def test_a_warm_replica_may_have_twice_the_least_load_and_eight_more(least, most):
    # The load counts the request itself.
    router = Router()
    router.note("http://b", PREFIX)
    assert router.order(fleet(least, most, least, permits=99), PREFIX)[0] == "http://b"
    assert router.order(fleet(least, most + 1, least, permits=99), PREFIX)[0] != "http://b"


def test_who_holds_little_of_the_prefix_may_have_little_more_to_do():
    router = Router()
    router.note("http://b", PREFIX[:2])
    assert router.order(fleet(3, 3, 3), PREFIX)[0] == "http://b"
    assert router.order(fleet(3, 5, 3), PREFIX)[0] != "http://b"


def test_a_warm_replica_without_a_permit_comes_last():
    router = Router()
    router.note("http://b", PREFIX)
    assert router.order(fleet(3, 4, 3, permits=4), PREFIX)[-1] == "http://b"


def test_the_replica_that_wrote_the_previous_answer_is_taken_though_the_router_never_saw_it():
    assert Router().order(fleet(2, 2, 4), PREFIX, hint="http://c")[0] == "http://c"
    router = Router()
    router.note("http://a", PREFIX[:4])
    assert router.order(fleet(2, 2, 4), PREFIX, hint="http://c")[0] == "http://c"
    assert Router().order(fleet(2, 2, 3), (), hint="http://c")[0] == "http://c"


def test_a_hint_does_not_beat_who_is_known_to_hold_all():
    router = Router()
    router.note("http://a", PREFIX)
    assert router.order(fleet(2, 2, 2), PREFIX, hint="http://c")[:2] == ["http://a", "http://c"]


def test_a_replica_whose_cache_is_gone_is_like_any_other():
    router = Router()
    router.note("http://c", PREFIX)
    router.forget("http://c")
    assert router.order(fleet(2, 2, 3), PREFIX)[-1] == "http://c"


def test_where_nobody_holds_anything_the_least_loaded_by_weight_comes_first():
    candidates = [Candidate("small", 3, 16, 1.0), Candidate("large", 7, 64, 4.0), Candidate("idle", 2, 16, 1.0)]
    assert Router().order(candidates, PREFIX) == ["large", "idle", "small"]


def test_among_equals_one_prefix_has_one_place_and_many_have_all():
    candidates = [Candidate(f"http://{number}", 1, 16, 1.0) for number in range(100)]
    router = Router()
    assert len({tuple(router.order(candidates, (7, tail))) for tail in range(20)}) == 1
    firsts = Counter(router.order(candidates, (number,))[0] for number in range(5_000))
    assert len(firsts) == 100
    assert max(firsts.values()) < 150


def test_among_equals_weights_share_out_what_is_new():
    # One permit's load by weight 4 is a quarter: all have the same load here.
    candidates = [Candidate("http://large", 3, 64, 4.0), *(Candidate(f"http://{n}", 0, 16, 1.0) for n in range(4))]
    router = Router()
    firsts = Counter(router.order(candidates, (number,))[0] for number in range(4_000))
    assert firsts["http://large"] == pytest.approx(2_000, rel=0.1)


def test_prompts_too_short_for_a_block_take_turns():
    router = Router()
    assert len({router.order(fleet(0, 0, 0, 0), ())[0] for _ in range(50)}) == 4


def test_a_replica_that_comes_or_goes_moves_only_what_it_must():
    candidates = [Candidate(f"http://{number}", 0, 16, 1.0) for number in range(20)]
    router = Router()
    before = {key: router.order(candidates, (key,))[0] for key in range(500)}
    after = {key: router.order(candidates[:-1], (key,))[0] for key in range(500)}
    gone = candidates[-1].url
    assert all(after[key] == url for key, url in before.items() if url != gone)
    assert 0 < sum(url == gone for url in before.values()) < 60


def test_a_hot_prefix_spreads_over_no_more_replicas_than_its_load_needs():
    candidates = fleet(*[0] * 12)
    router = Router()
    for _ in range(12):
        url = router.order(candidates, (1, 2, 3))[0]
        router.note(url, (1, 2, 3))
        candidates = [
            Candidate(each.url, each.in_flight + (each.url == url), each.permits, each.weight) for each in candidates
        ]
    used = [each.in_flight for each in candidates if each.in_flight]
    assert sum(used) == 12
    assert max(used) <= 10
    assert len(used) == math.ceil(12 / 10)


def test_of_a_thousand_replicas_the_one_that_is_warm_and_the_last_that_has_room_are_found():
    candidates = [Candidate(f"http://{number}", 15, 16, 1.0) for number in range(1_000)]
    router = Router()
    router.note("http://777", PREFIX)
    assert all(router.order(candidates, PREFIX)[0] == "http://777" for _ in range(20))
    candidates = [Candidate(f"http://{number}", 16 - (number == 500), 16, 1.0) for number in range(1_000)]
    assert all(router.order(candidates, (number,))[0] == "http://500" for number in range(20))


def test_of_a_thousand_idle_replicas_every_one_gets_its_share():
    candidates = [Candidate(f"http://{number}", 0, 16, 1.0) for number in range(1_000)]
    router = Router()
    firsts = Counter(router.order(candidates, (number,))[0] for number in range(10_000))
    assert len(firsts) > 990
    assert max(firsts.values()) < 30


def test_every_process_decides_alike():
    script = (
        "from inference.messages import ChatMessage\n"
        "from inference.prefixes import prefix_of\n"
        "from inference.router import Candidate, Router\n"
        "prefix = prefix_of([ChatMessage('user', 'a long question ' * 500)])\n"
        "router = Router()\n"
        "router.note('http://6', prefix[:3])\n"
        "print(prefix, router.order([Candidate(f'http://{n}', n % 3, 16, 1.0) for n in range(99)], prefix))\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(said) == 1
    assert b"['http://6', " in said.pop()
