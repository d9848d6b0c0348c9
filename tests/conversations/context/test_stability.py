"""A prompt goes on as the one before, so that a model server need not read it anew."""

from itertools import pairwise
from statistics import mean

import pytest

from conversations.context.fitting import budget_of
from tests.conversations.context.counting import prompt_tokens
from tests.conversations.context.paths import Talk, summary, words

QUESTION_TOKENS, ANSWER_TOKENS, MOST_ANSWER_TOKENS = 60, 200, 1_024
EPOCH_MESSAGES = 10


class Summaries:
    """Restates the oldest messages once ten of them are beyond a share of the budget; some turns later it is done."""

    def __init__(self, talk, *, share, turns_late):
        self.talk, self.turns_late = talk, turns_late
        self.newest_tokens = budget_of(talk.window_tokens, talk.answer_tokens) * share
        self.covered, self.under_way = 2, []

    def look(self, turn):
        while self.beyond() - self.covered >= EPOCH_MESSAGES:
            self.covered += EPOCH_MESSAGES
            epoch = self.covered // EPOCH_MESSAGES
            text = "\n".join(f"- what was said in {each}" for each in range(1, epoch + 1))
            self.under_way.append((turn + self.turns_late, summary(epoch, self.covered, text)))
        while self.under_way and self.under_way[0][0] <= turn:
            self.talk.summaries.append(self.under_way.pop(0)[1])

    def beyond(self):
        tokens = 0
        for place in range(len(self.talk.path) - 1, -1, -1):
            tokens += self.talk.path[place].token_counts["bpe"]
            if tokens > self.newest_tokens:
                return place + 1
        return 0


def talk_for(turns, window_tokens, **summaries):
    talk = Talk(window_tokens=window_tokens, answer_tokens=MOST_ANSWER_TOKENS, site_instructions="Be brief.")
    worker = Summaries(talk, **summaries) if summaries else None
    for turn in range(turns):
        talk.ask(words(QUESTION_TOKENS, turn * 2), words(ANSWER_TOKENS, turn * 2 + 1))
        if worker:
            worker.look(turn)
    return talk


def changes(values):
    return sum(before != after for before, after in pairwise(values))


def test_of_thirty_turns_that_fit_each_prompt_is_the_one_before_with_its_answer():
    talk = talk_for(30, 16_384)
    assert talk.record.tail_from is None
    for before, after in pairwise(talk.prompts):
        assert after.messages[: len(before.messages)] == before.messages
    # What is new is a question. It has more than a twentieth of a prompt only while there is little else.
    for share, prompt in zip(talk.shares, talk.prompts[1:], strict=True):
        tokens = prompt_tokens(prompt.messages)
        assert share >= (0.95 if tokens >= 20 * QUESTION_TOKENS * 1.3 else 1 - 1.3 * QUESTION_TOKENS / tokens)


@pytest.mark.parametrize("window_tokens", [8_192, 16_384])
def test_of_two_hundred_turns_that_do_not_fit_most_of_each_prompt_is_the_one_before(window_tokens):
    talk = talk_for(200, window_tokens)
    assert talk.record.messages_dropped > 200
    assert mean(talk.shares) >= 0.85


@pytest.mark.parametrize(
    ("window_tokens", "share", "turns_late"), [(8_192, 0.45, 0), (8_192, 0.45, 2), (16_384, 0.6, 3)]
)
def test_of_two_hundred_turns_with_summaries_most_of_each_prompt_is_the_one_before(window_tokens, share, turns_late):
    talk = talk_for(200, window_tokens, share=share, turns_late=turns_late)
    assert talk.record.summary.epoch > 20
    assert mean(talk.shares) >= 0.85


def test_where_summaries_come_in_time_they_change_only_when_the_cut_does():
    talk = talk_for(120, 8_192, share=0.45, turns_late=0)
    used = [prompt.record.summary and prompt.record.summary.epoch for prompt in talk.prompts]
    cuts = [prompt.record.tail_from for prompt in talk.prompts]
    assert changes(used) == changes(zip(used, cuts, strict=True)) == changes(cuts)
