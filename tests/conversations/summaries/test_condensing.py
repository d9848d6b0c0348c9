"""A summary that outgrows its share of the window is written anew, and the old one stays where that fails."""

from itertools import pairwise

import pytest

from conversations.context.epochs import summary_share
from conversations.context.restating import tokens_of
from conversations.models import Errand
from tests.conversations.summaries.talks import StoredTalk, restate

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_other_worker")]

WORDS = ["boat", "bike", "tent", "lamp", "rope", "soap", "bread", "juice", "knife", "towel", "jacket", "ticket"]


def is_condensing(prompt):
    return prompt[0][1].startswith("You shorten")


def told_much(model):
    talk = StoredTalk()
    for number, word in enumerate(WORDS * 2):
        question = f"fact: item {number + 1000} is a {word}, which costs much and is needed for the journey to the lake"
        talk.look_after(talk.ask(question), model)
    return talk


def test_condensed_epochs_cover_one_exchange_and_keep_every_number():
    def model(prompt):
        if not is_condensing(prompt):
            return restate(prompt)
        notes = prompt[1][1].split("And from the conversation since:")[0]
        numbers = [line.split()[3] for line in notes.splitlines() if line.startswith("- fact: item")]
        return "- fact: needed for the journey to the lake are the items " + ", ".join(numbers)

    talk = told_much(model)
    texts = [each.text for each in talk.stored()]
    condensed = [after for before, after in pairwise(texts) if not after.startswith(before)]
    assert condensed
    assert all("1001" in text for text in texts)
    details = Errand.objects.filter(kind="summary").values_list("details", flat=True)
    assert {len(each["messages"]) for each in details if each["condenses"]} == {2}


def test_a_model_that_only_copies_leaves_the_summary_within_bounds():
    talk = told_much(lambda prompt: prompt[1][1] if is_condensing(prompt) else restate(prompt))
    share = summary_share(talk.prompt.record.budget_tokens)
    assert max(tokens_of(each.text) for each in talk.stored()) < 2.5 * share
    assert "item 1001" in talk.stored()[-1].text
    assert talk.stored()[-1].covers_up_to_id >= talk.prompt.record.dropped_up_to


def test_a_model_that_cannot_condense_replaces_nothing():
    talk = told_much(lambda prompt: "I'm sorry, I can't." if is_condensing(prompt) else restate(prompt))
    texts = [each.text for each in talk.stored()]
    assert all(after.startswith(before) for before, after in pairwise(texts))
    assert Errand.objects.filter(kind="summary", status="failed").exists()
