"""A conversation gets its title: from the answer's end over Celery and a worker to the pages that are open."""

import asyncio
import time

import pytest

from chatsite.celery import celery_workers_key
from conversations.context.titles import prompt_for_title, title_from
from conversations.models import Conversation, Errand
from inference.testing.answers import expected_answer
from tests.conversations.test_live_socket import receive, receive_until
from tests.inference.core.waiting import until
from tests.running_site import wait_until

QUESTION = '@twin {"text": "Rinse it, then boil it."}\nHow do I cook rice?'
ANSWER = "Rinse it, then boil it."


@pytest.fixture(scope="module")
def celery(shared_site, _redis):
    began = time.time()
    with shared_site.celery() as process:
        wait_until(lambda: _redis.zcount(celery_workers_key("celery"), began, "inf"), 60, "a Celery worker")
        yield process


def expected_title():
    asked = prompt_for_title(QUESTION, ANSWER)[-1].content
    return title_from(expected_answer(asked, max_new_tokens=200), QUESTION)


async def titled(conversation_id, title):
    async def is_titled():
        return (await Conversation.objects.aget(pk=conversation_id)).title == title

    await until(is_titled, seconds=20)


async def test_a_conversation_is_named_and_open_pages_are_told(alice, alice_secret, http, site, celery):
    conversation_id = await alice.conversation()
    async with http.ws_connect(f"{site.url}/v1/live", protocols=["bearer", alice_secret]) as socket:
        await socket.send_str("not json")  # once it is answered, the socket has joined its group
        await receive(socket)
        await alice.send(conversation_id, QUESTION)
        assert (await Conversation.objects.aget(pk=conversation_id)).title.startswith("@twin")
        await titled(conversation_id, expected_title())
        changed = {"type": "conversation_changed", "conversation_id": conversation_id}
        await receive_until(socket, lambda data: data == changed)
    errand = await Errand.objects.aget(conversation_id=conversation_id, kind="title")
    assert (errand.status, errand.prompt, errand.text) == ("settled", [], "")


async def test_the_title_that_a_user_gave_stays(alice, celery):
    conversation_id = await alice.conversation(title="Mine")
    await alice.send(conversation_id, QUESTION)
    other = await alice.conversation()
    await alice.send(other, QUESTION)
    await titled(other, expected_title())
    assert (await Conversation.objects.aget(pk=conversation_id)).title == "Mine"
    assert not await Errand.objects.filter(conversation_id=conversation_id, kind="title").aexists()


async def test_an_answer_that_was_stopped_gives_no_title_but_the_next_one_does(alice, site, celery):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"tokens": 2000, "token_ms": 5}\nGo') as stream:
        events = await stream.until("token", 3)
        await alice.call("POST", f"/v1/generations/{events[0].data['generation_id']}/cancel")
        await stream.rest()
    done = await alice.send(conversation_id, QUESTION)
    await titled(conversation_id, expected_title())
    errand = await Errand.objects.aget(conversation_id=conversation_id, kind="title")
    assert str(errand.message_id) == done[0].data["message_id"]


async def test_two_quick_conversations_and_turns_each_get_one_title(alice, celery):
    conversation_ids = [await alice.conversation() for _ in range(3)]
    for _ in range(2):
        await asyncio.gather(*(alice.send(each, QUESTION) for each in conversation_ids))
    for each in conversation_ids:
        await titled(each, expected_title())
        assert await Errand.objects.filter(conversation_id=each, kind="title").acount() == 1
