"""Which messages are due to be summarised."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.context.epochs import Measured, after_head, is_long, next_epoch, summary_share
from conversations.context.record import Record

BUDGET = 1_000


def path_of(*tokens, start=1):
    """Return alternating questions and answers with so many tokens each; their ids are their places."""
    return [
        Measured(UUID(int=place), "user" if (place - start) % 2 == 0 else "assistant", each, each * 4)
        for place, each in enumerate(tokens, start)
    ]


def covered(path, **given):
    """Return the place of the last message of the next epoch, 0 where none is due."""
    epoch = next_epoch(path, **{"budget_tokens": BUDGET, "kept_from": None, "most_bytes": 8_000} | given)
    assert list(epoch) == list(path[: len(epoch)])
    return epoch[-1].message_id.int if epoch else 0


def test_nothing_is_due_while_all_is_within_the_comfortable_share():
    assert covered(path_of(*[20] * 22)) == 0


def test_ten_messages_beyond_the_comfortable_share_are_an_epoch():
    assert covered(path_of(*[20] * 30)) == 0
    assert covered(path_of(*[20] * 32)) == 10


def test_many_tokens_do_not_wait_for_ten_messages():
    assert covered(path_of(*[100] * 6)) == 0
    assert covered(path_of(*[100] * 8)) == 4


def test_what_a_prompt_left_out_is_due_at_once():
    path = path_of(*[20] * 20)
    assert covered(path) == 0
    assert covered(path, kept_from=UUID(int=5)) == 4


def test_an_epoch_of_a_long_path_has_about_ten_messages():
    assert covered(path_of(*[20] * 500)) == 10


def test_an_epoch_shows_the_model_no_more_than_it_can_read_but_at_least_one_exchange():
    assert covered(path_of(*[100] * 40), most_bytes=2_000) == 4
    assert covered(path_of(*[100] * 40), most_bytes=10) == 2


def test_an_epoch_ends_at_an_answer_and_never_between_it_and_what_continues_it():
    roles = ["user", "user", "assistant", "assistant"] * 10
    path = [Measured(UUID(int=place), role, 40, 160) for place, role in enumerate(roles, 1)]
    assert covered(path) == 12


@pytest.mark.parametrize("last_tokens", [10, 5_000])
def test_the_last_exchange_is_never_covered(last_tokens):
    assert covered(path_of(500, 500, last_tokens, last_tokens)) in (0, 2)
    assert covered(path_of(5_000, 5_000)) == 0


def test_an_epoch_that_was_given_up_is_followed_by_a_longer_one():
    path = path_of(*[20] * 40)
    assert covered(path, failed={UUID(int=10)}) == 12
    assert covered(path, failed={UUID(int=10), UUID(int=12)}) == 14
    assert covered(path, failed={UUID(int=place) for place in range(100)}) == 0


def test_the_first_exchange_is_left_to_the_prompt_while_it_is_small():
    assert after_head(path_of(100, 100, 20, 20), BUDGET)[0].message_id.int == 3
    assert after_head(path_of(300, 300, 20, 20), BUDGET)[0].message_id.int == 1
    assert list(after_head(path_of(20, 20), BUDGET)) == []
    assert list(after_head([], BUDGET)) == []


def test_a_summary_has_its_share_of_the_window_within_limits():
    assert [summary_share(budget) for budget in (100, 4_000, 100_000)] == [200, 600, 1_500]


@given(st.lists(st.integers(0, 400), max_size=40).map(lambda tokens: tokens[: len(tokens) // 2 * 2]))
def test_no_epoch_is_due_after_an_answer_that_is_not_worth_a_look(tokens):
    record = Record(tokenizer="t", is_exact=True, window_tokens=2_000, budget_tokens=BUDGET, total_tokens=0)
    assert is_long(record, sum(tokens)) or covered(path_of(*tokens)) == 0


def test_a_prompt_that_lacks_something_is_worth_a_look_however_short_it_is():
    record = Record(
        tokenizer="t", is_exact=True, window_tokens=2_000, budget_tokens=BUDGET, total_tokens=9, tail_from=UUID(int=7)
    )
    assert is_long(record, 9)
