"""Nothing is counted that need not be, and nothing twice; near the budget the server's own count decides."""

import pytest

from conversations.context.fitting import budget_of
from inference.tgi.errors import Unreachable
from tests.conversations.context.counting import Counter, Nobody, prompt_tokens, tokens_of
from tests.conversations.context.paths import counted, exchanges, fitted, memories_of, path_of, words


def test_what_is_surely_short_is_not_counted():
    prompt = fitted(path_of(*exchanges(2), ("user", "so?")), counter=Nobody(), window_tokens=8_000)
    assert not prompt.record.is_exact
    assert prompt.record.total_tokens >= prompt_tokens(prompt.messages)
    assert prompt.max_new_tokens == 200


def test_without_a_known_window_nothing_is_counted_or_left_out():
    path = path_of(*exchanges(200), ("user", "so?"))
    prompt = fitted(path, counter=Nobody(), window_tokens=None, answer_tokens=77, memories=memories_of(words(500)))
    assert len(prompt.messages) == len(path) + 1
    assert (prompt.max_new_tokens, prompt.is_trimmed) == (77, False)
    assert (prompt.record.window_tokens, prompt.record.budget_tokens) == (None, None)


def test_what_was_counted_before_is_not_counted_again():
    counter, path = Counter(), counted(path_of(*exchanges(18)))
    path = (*path, *path_of(*exchanges(18), ("user", "What then?"))[-1:])
    prompt = fitted(path, counter=counter, site_instructions="Be brief.", window_tokens=1_650)
    assert not prompt.is_trimmed
    assert sorted(counter.texts) == ["Be brief.", "What then?"]
    assert prompt.new_counts == {path[-1].message_id: tokens_of("What then?")}


def test_counts_of_another_tokenizer_do_not_serve():
    counter, path = Counter("other"), counted(path_of(*exchanges(18), ("user", "What then?")))
    prompt = fitted(path, counter=counter)
    assert prompt.new_counts == {said.message_id: tokens_of(said.content) for said in path}


def test_what_is_too_old_to_be_in_the_prompt_is_not_counted():
    counter, path = Counter(), path_of(*exchanges(400), ("user", "What then?"))
    prompt = fitted(path, counter=counter)
    assert prompt.record.tail_from
    assert sum(map(tokens_of, counter.texts)) < 3 * 2_000
    assert len(prompt.new_counts) < 200


def test_a_text_that_is_said_twice_is_counted_once():
    counter = Counter()
    fitted(path_of(*[("user", words(60)), ("assistant", words(80, 1))] * 12, ("user", "so?")), counter=counter)
    assert len(counter.texts) == 3


def test_near_the_budget_the_server_counts_the_whole():
    counter = Counter()
    path = counted(path_of(*exchanges(10), ("user", words(900))))
    prompt = fitted(path, counter=counter)
    assert counter.prompts == [prompt.messages]
    assert prompt.record.is_exact
    assert prompt.record.total_tokens == prompt_tokens(prompt.messages)
    assert prompt.max_new_tokens == min(200, 2_000 - prompt.record.total_tokens)


def test_parts_that_weigh_less_than_the_whole_do_not_lead_over_the_budget():
    counter = Counter(bias=1.3)
    prompt = fitted(path_of(*exchanges(40), ("user", "so?")), counter=counter)
    assert prompt_tokens(prompt.messages) <= budget_of(2_000, 200)
    assert len(counter.prompts) <= 4


def test_parts_that_weigh_more_than_the_whole_leave_nothing_out_that_fits():
    path = path_of(*exchanges(20), ("user", "so?"))
    tokens = prompt_tokens(fitted(path, window_tokens=None).messages)
    prompt = fitted(path, window_tokens=tokens + 210)
    assert not prompt.is_trimmed


def test_counts_that_the_server_only_guessed_are_not_stored():
    prompt = fitted(path_of(*exchanges(40), ("user", "so?")), counter=Counter(is_exact=False))
    assert prompt.new_counts == {}
    assert not prompt.record.is_exact


def test_a_long_prompt_that_nobody_can_count_is_not_guessed():
    with pytest.raises(Unreachable):
        fitted(path_of(*exchanges(40), ("user", "so?")), counter=Nobody())


def test_a_long_answer_is_shortened_before_anything_is_left_out():
    path = path_of(("user", words(400)), ("assistant", words(200)), ("user", "so?"))
    prompt = fitted(path, window_tokens=1_000, answer_tokens=900)
    assert len(prompt.messages) == 3
    assert prompt.max_new_tokens == pytest.approx(1_000 - prompt_tokens(prompt.messages), abs=30)


def test_a_quarter_of_the_window_at_most_is_kept_for_the_answer():
    assert budget_of(4_000, 9_000) == 3_000
    assert budget_of(4_000, 500) == 3_500
    assert budget_of(100, 9_000) == 36
    assert budget_of(10, 9_000) == 0
