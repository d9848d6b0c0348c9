"""A prompt goes on as the one before, so that a model server need not read it anew."""

from statistics import mean

import pytest

from tests.conversations.context.counting import prompt_tokens
from tests.conversations.context.paths import Talk, summary, words

QUESTION_TOKENS, ANSWER_TOKENS = 60, 200


def talk_for(talk, turns):
    for turn in range(turns):
        talk.ask(words(QUESTION_TOKENS, turn * 2), words(ANSWER_TOKENS, turn * 2 + 1))
        yield turn
    return talk


def test_of_thirty_turns_that_fit_each_prompt_is_the_one_before_with_its_answer():
    talk = Talk(window_tokens=16_384, answer_tokens=1_024, site_instructions="Be brief.")
    for _ in talk_for(talk, 30):
        pass
    assert talk.record.tail_from is None
    assert all(text.messages[-1].role == "user" for text in talk.prompts)
    grown = [1 - 90 / prompt_tokens(prompt.messages) for prompt in talk.prompts[1:]]
    assert all(share >= least for share, least in zip(talk.shares, grown, strict=True))
    assert mean(talk.shares) >= 0.95


@pytest.mark.parametrize("window_tokens", [8_192, 16_384, 32_768])
def test_of_two_hundred_turns_that_do_not_fit_most_of_each_prompt_is_the_one_before(window_tokens):
    talk = Talk(window_tokens=window_tokens, answer_tokens=1_024, site_instructions="Be brief.")
    for _ in talk_for(talk, 200):
        pass
    assert talk.record.messages_dropped > 50
    assert mean(talk.shares) >= 0.85


@pytest.mark.parametrize("window_tokens", [16_384, 32_768])
def test_of_two_hundred_turns_with_late_summaries_most_of_each_prompt_is_the_one_before(window_tokens):
    talk = Talk(window_tokens=window_tokens, answer_tokens=1_024, site_instructions="Be brief.")
    comfortable = int(window_tokens * 7 / 8 * 0.6)
    covered, late = 2, []
    for turn in talk_for(talk, 200):
        tokens, beyond = 0, 0
        for place in range(len(talk.path) - 1, 1, -1):
            tokens += talk.path[place].token_counts["bpe"]
            if tokens > comfortable:
                beyond = place + 1
                break
        while beyond - covered >= 10:
            covered += 10
            epoch = len(talk.summaries) + len(late) + 1
            text = "\n".join(f"- what was said in {each}" for each in range(1, epoch + 1))
            late.append((turn + 3, summary(epoch, covered, text)))
        while late and late[0][0] <= turn:
            talk.summaries.append(late.pop(0)[1])
    assert talk.record.summary.epoch > 3
    assert mean(talk.shares) >= 0.85
