"""A conversation that outgrows the model's window: its beginning and its end stay, its prompts stay alike."""

from itertools import pairwise
from statistics import mean

import pytest
from asgiref.sync import sync_to_async
from django.db.models import F

from conversations.context.record import Record
from conversations.models import Conversation, Generation, Message, Summary
from inference.testing.settings import TwinSettings
from tests.api_client import text_of
from tests.conversations.prompts import last_prompt, prompts_of, rendered, share_of_the_one_before
from tests.inference.core.waiting import until
from tests.running_site import running_site

WINDOW = 2000
ANSWER = 100


@pytest.fixture(scope="module")
def narrow_site(no_other_worker, tmp_path_factory):
    """A site whose model reads and writes 2,000 tokens at most."""
    twin = TwinSettings(token_ms=0, prefill_ms=0, max_input_tokens=WINDOW - 1, max_total_tokens=WINDOW)
    log = tmp_path_factory.mktemp("narrow") / "log"
    with running_site(twin_settings=twin, log=log, MAX_ANSWER_TOKENS=str(ANSWER)) as site:
        yield site


@pytest.fixture
def site(narrow_site, transactional_db):
    narrow_site.twin.reset()
    return narrow_site


def question(text, tokens=20):
    return f'@twin {{"tokens": {tokens}}}\n{text}'


async def record_of(events):
    return Record.read((await Generation.objects.aget(pk=events[0].data["generation_id"])).context)


async def talk(alice, conversation_id, turns, *, first=()):
    """Have a conversation, and return the events of each answer."""
    contents = [*first, *(question(f"This is the question number {turn}.") for turn in range(len(first), turns))]
    return [await alice.send(conversation_id, content) for content in contents]


async def summarise(conversation_id, text, *, covered, newest):
    """Store a summary as the background work does."""
    await Summary.objects.acreate(
        conversation_id=conversation_id,
        covers_up_to_id=covered,
        made_for_id=newest[0].data["generation_id"],
        epoch=1,
        text=text,
        model="small",
    )
    await Conversation.objects.filter(pk=conversation_id).aupdate(context_version=F("context_version") + 1)


def notices(events):
    return [event.data["code"] for event in events if event.type == "notice"]


async def test_eighty_turns_that_do_not_fit_stay_alike_and_within_the_window(alice, site):
    answers = await talk(alice, await alice.conversation(), 80)
    prompts = await prompts_of(site)
    assert len(prompts) == 80
    assert {events[-1].data["finish_reason"] for events in answers} == {"stop"}
    assert max(events[-1].data["usage"]["in"] for events in answers) <= WINDOW - ANSWER
    shares = [
        share_of_the_one_before(prompt, before, text_of(events))
        for (before, prompt), events in zip(pairwise(prompts), answers, strict=False)
    ]
    assert mean(shares) >= 0.85
    assert [notices(events) for events in answers if notices(events)] == [["context_trimmed"]]
    assert prompts[-1][1:3] == [*prompts[0][1:], ("assistant", text_of(answers[0]))]
    last = await record_of(answers[-1])
    assert last.messages_kept + last.messages_dropped == 159
    assert last.budget_tokens == WINDOW - ANSWER >= last.total_tokens


async def test_what_was_said_in_the_first_turns_is_in_the_last_prompt(alice, site):
    facts = ("The budget is 3,500 euros.", "The client's name is Marta.")
    conversation_id = await alice.conversation()
    answers = await talk(alice, conversation_id, 59, first=[question(facts[0]), question(facts[1])])
    covered = (await record_of(answers[-1])).dropped_up_to
    await summarise(conversation_id, "- The client is called Marta.", covered=covered, newest=answers[-1])
    events = await alice.send(conversation_id, question("What do you know?"))
    prompt = rendered(await last_prompt(site))
    assert facts[0] in prompt
    assert "The client is called Marta." in prompt
    assert (await record_of(events)).summary.epoch == 1


async def test_an_edit_above_what_is_summarised_ignores_the_summary(alice, site):
    conversation_id = await alice.conversation()
    answers = await talk(alice, conversation_id, 59)
    covered = (await record_of(answers[-1])).dropped_up_to
    text = "- Something that was never said on the other branch."
    await summarise(conversation_id, text, covered=covered, newest=answers[-1])
    path = await sync_to_async(
        lambda: list(Message.objects.filter(conversation_id=conversation_id, pk__lte=covered).order_by("pk"))
    )()
    edited_after = path[-3]
    assert edited_after.role == "assistant"
    await alice.send(conversation_id, question("Something else."), parent_id=str(edited_after.pk))
    prompt = rendered(await last_prompt(site))
    assert "never said on the other branch" not in prompt
    assert "Something else." in prompt


async def window_is_known(alice):
    """Wait until the worker has told the web process how much its model can read."""

    async def is_known():
        _, models = await alice.call("GET", "/v1/models")
        return models["data"][0]["context_size"] == WINDOW

    await until(is_known, seconds=20)


async def test_a_message_that_can_never_fit_is_refused_with_the_numbers(alice, site):
    await window_is_known(alice)
    conversation_id = await alice.conversation()
    status, refusal = await alice.call(
        "POST", f"/v1/conversations/{conversation_id}/messages", {"content": "word " * 5000, "stream": False}
    )
    assert status == 413
    numbers = refusal["error"]["details"]
    assert 0 < numbers["limit"] < WINDOW - ANSWER
    assert numbers["over"] == numbers["tokens"] - numbers["limit"]
    assert all(f"{number:,}" in refusal["error"]["message"] for number in numbers.values())
    assert await prompts_of(site) == []
