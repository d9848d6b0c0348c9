"""Epoch after epoch: what is covered, by what text, and what becomes of it when the path is another."""

from itertools import pairwise

import pytest

from conversations.models import Conversation, Errand, Generation, Message
from conversations.services import background, conversations, summaries
from tests.conversations.summaries.talks import FACTS, MARK, StoredTalk, restate, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_other_worker")]


def planted(talk, model=restate):
    for fact in FACTS:
        talk.look_after(talk.ask(fact), model)


def text_after(talk, turns, model=restate):
    planted(talk, model)
    talk.chat(turns, model=model)
    return talk.stored()


def test_facts_of_the_first_turns_are_in_the_prompt_of_the_sixtieth():
    talk = StoredTalk()
    text_after(talk, 54)
    talk.ask("What do you know of us?")
    assert talk.prompt.record.is_trimmed
    assert talk.prompt.record.summary.epoch > 1
    assert all(fact.removeprefix(MARK) in talk.shown for fact in FACTS)


def test_without_summaries_the_same_facts_are_lost():
    talk = StoredTalk()
    for fact in FACTS:
        talk.ask(fact)
    talk.chat(54)
    talk.ask("What do you know of us?")
    assert not any(fact in talk.shown for fact in FACTS[1:])


def test_an_answer_whose_record_cannot_be_read_is_looked_after_all_the_same():
    answer = StoredTalk().ask("What is rice?")
    Generation.objects.filter(pk=answer.pk).update(context={"tokenizer": "of a newer version"})
    background.look_after(answer.pk)
    assert list(Errand.objects.values_list("kind", flat=True)) == ["title"]


def test_originals_stay():
    talk = StoredTalk()
    text_after(talk, 30)
    assert Message.objects.filter(conversation=talk.conversation).count() == 2 * (30 + len(FACTS))
    assert [fact for fact in FACTS if Message.objects.filter(content=fact).exists()] == FACTS


def test_each_epoch_begins_with_the_text_of_the_one_before_and_covers_more():
    stored = text_after(StoredTalk(), 40)
    assert len(stored) > 3
    assert [each.epoch for each in stored] == list(range(1, len(stored) + 1))
    for before, after in pairwise(stored):
        assert after.text.startswith(before.text)
        assert after.covers_up_to_id > before.covers_up_to_id


def test_an_epoch_ends_at_an_answer_and_was_made_for_a_later_one():
    for each in text_after(StoredTalk(), 20):
        assert each.covers_up_to.role == each.made_for.role == "assistant"
        assert each.made_for_id > each.covers_up_to_id


def test_a_short_conversation_has_no_summary():
    assert text_after(StoredTalk(window_tokens=8_000), 5) == []


def test_the_model_is_shown_only_what_is_not_covered_yet():
    talk, prompts = StoredTalk(), []

    def model(prompt):
        prompts.append(prompt[-1][1])
        return restate(prompt)

    text_after(talk, 30, model)
    assert len(prompts) > 2
    assert FACTS[1] in prompts[0]
    assert not any(FACTS[1] in prompt for prompt in prompts[1:])
    assert len({tuple(prompt[0]) for prompt in Errand.objects.values_list("prompt", flat=True) if prompt}) <= 1


def test_the_first_exchange_is_left_to_the_prompt():
    talk, prompts = StoredTalk(), []
    text_after(talk, 30, lambda prompt: prompts.append(prompt[-1][1]) or restate(prompt))
    assert not any(FACTS[0] in prompt for prompt in prompts)
    assert talk.prompt.messages[1].content == FACTS[0]


def test_while_an_epoch_is_being_written_no_other_is_asked_for():
    talk = StoredTalk()
    generation = talk.chat(12)
    errand = summaries.ask_for_summary(generation)
    assert errand is not None
    assert summaries.ask_for_summary(generation) is None
    assert summaries.ask_for_summary(talk.chat(3)) is None


def test_several_epochs_that_are_due_follow_each_other():
    talk = StoredTalk()
    generation = talk.chat(40)
    talk.look_after(generation)
    covered = talk.stored()[-1].covers_up_to_id
    assert covered >= talk.prompt.record.dropped_up_to
    assert len(talk.stored()) > 3


@pytest.mark.parametrize("text", ["", "<think>hm", "I'm sorry, I can't do that.", "- a b c\n- d e\n" * 50])
def test_what_is_no_list_of_points_is_no_summary_and_is_asked_for_again(text):
    talk = StoredTalk()
    errand = summaries.ask_for_summary(talk.chat(12))
    write(errand, text)
    assert talk.stored() == []
    again = summaries.ask_for_summary(talk.chat(1))
    assert (again.pk, again.requests) == (errand.pk, 2)
    write(again, "- small matters")
    assert [each.text for each in talk.stored()] == ["- small matters"]


def test_after_three_failures_a_longer_stretch_is_tried():
    talk = StoredTalk()
    generation = talk.chat(20)
    ends = []
    for _ in range(4):
        errand = summaries.ask_for_summary(generation)
        ends.append(errand.message_id)
        write(errand, "")
    assert len(set(ends[:3])) == 1
    assert ends[3] > ends[0]
    assert talk.stored() == []


def test_a_failed_summary_replaces_no_history():
    talk = StoredTalk()
    planted(talk, lambda _: "")
    talk.chat(3, model=lambda _: "")
    assert talk.prompt.record.summary is None
    assert talk.stored() == []


def test_a_branch_above_the_covered_point_has_nothing_of_the_summary_and_gets_its_own():
    talk = StoredTalk()
    first = talk.ask("fact: it began here")
    text_after(talk, 20)
    before = {each.pk for each in talk.stored()}
    talk.ask("fact: another way", after=first)
    assert talk.prompt.record.summary is None
    for number in range(20):
        talk.look_after(talk.ask(f"fact: branch {number} is green"))
    own = [each for each in talk.stored() if each.pk not in before]
    assert [each.epoch for each in own] == list(range(1, len(own) + 1))
    assert "another way" in own[-1].text
    assert "Marchetti" not in own[-1].text
    assert talk.prompt.record.summary.summary_id in {each.pk for each in own}


def test_a_branch_below_the_covered_point_goes_on_with_the_summary():
    talk = StoredTalk()
    stored = text_after(talk, 20)
    tip = talk.chat(1)
    talk.ask("One way", after=tip)
    other = talk.ask("Another way", after=tip)
    assert talk.prompt.record.summary.summary_id in {each.pk for each in stored}
    talk.last = other.message
    talk.chat(12, model=restate)
    newest = talk.stored()[-1]
    assert newest.epoch > stored[-1].epoch
    assert newest.text.startswith(stored[-1].text)


def test_late_epochs_are_each_true_and_the_one_that_covers_most_is_continued():
    talk = StoredTalk()
    planted(talk, lambda _: "- fact: early")
    generation = talk.chat(20)
    early = summaries.ask_for_summary(generation)
    # As if two tasks had looked at once: another errand from the same summary, for a longer stretch.
    longer = Errand.objects.get(pk=early.pk)
    epoch = summaries.Epoch.read(longer.details)
    path = list(Message.objects.filter(conversation=talk.conversation).order_by("id"))
    end = next(place for place, each in enumerate(path) if each.pk == early.message_id) + 2
    later = Errand.objects.create(
        kind="summary",
        conversation=talk.conversation,
        message=path[end],
        user=talk.conversation.user,
        model="small",
        prompt=early.prompt,
        details=early.details | {"messages": [*map(str, epoch.messages), str(path[end - 1].pk), str(path[end].pk)]},
        max_tokens=100,
        deadline=early.deadline,
    )
    write(later, "- fact: later")
    write(early, "- fact: in between")
    texts = [each.text for each in talk.stored()][-2:]
    assert "later" not in texts[0]
    assert "in between" not in texts[1]
    following = Errand.objects.filter(conversation=talk.conversation, status="queued").get()
    newest = talk.stored()[-1]
    assert newest.covers_up_to_id == later.message_id
    assert summaries.Epoch.read(following.details).after == newest.pk


def test_a_written_summary_changes_the_contexts_version_once():
    talk = StoredTalk()
    before = Conversation.objects.get(pk=talk.conversation.pk).context_version
    errand = summaries.ask_for_summary(talk.chat(12))
    write(errand, "- small matters")
    background.settle(errand.pk)
    assert Conversation.objects.get(pk=talk.conversation.pk).context_version == before + 1


def test_of_a_conversation_that_was_deleted_meanwhile_nothing_is_made():
    talk = StoredTalk()
    errand = summaries.ask_for_summary(talk.chat(12))
    conversations.delete(user=talk.conversation.user, conversation_id=talk.conversation.pk)
    background.settle(errand.pk)
    assert talk.stored() == []
    assert not Errand.objects.filter(pk=errand.pk).exists()


def test_temporary_conversations_are_summarised_too():
    talk = StoredTalk(temporary=True)
    assert text_after(talk, 20)


def test_an_unknown_window_asks_for_nothing():
    talk = StoredTalk(window_tokens=None)
    assert summaries.ask_for_summary(talk.chat(3)) is None


def test_an_answer_without_a_record_asks_for_nothing():
    talk = StoredTalk()
    generation = talk.chat(12)
    generation.context = None
    assert summaries.ask_for_summary(generation) is None


def test_the_points_are_stored_in_the_language_in_which_they_were_written():
    talk = StoredTalk()
    errand = summaries.ask_for_summary(talk.chat(12))
    assert "Use the language of the conversation." in errand.prompt[0][1]
    write(errand, "- 用户住在罗马\n- предпочитает чай")
    assert talk.stored()[0].text == "- 用户住在罗马\n- предпочитает чай"
