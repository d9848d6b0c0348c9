"""What is known at an answer's end is kept for the next turn, and nothing that is not known."""

from dataclasses import replace

import pytest

from conversations.models import Message
from conversations.services.context_cache import ContextCache, Place
from conversations.services.history import History
from conversations.services.keeping import keep_for_the_next_turn
from foundation.database import in_database
from tests.inference.core.test_answering import MATERIAL, SAYS_HI, answering

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cache(client):
    return ContextCache(client, 60)


def place_after(answer):
    attempt = answer.reply.attempt
    return Place(attempt.user_id, attempt.conversation_id, attempt.generation_id, attempt.opening.context_version)


async def kept(cache, answer):
    """Return the contents of the history that is kept, `None` where none is."""
    history = await cache.find(place_after(answer))
    return history and [said.content for said in history.said]


async def test_the_history_is_kept_though_the_server_cannot_count(publisher, client, cache):
    async with answering(publisher, client, SAYS_HI) as (answer, _):
        await answer.write(MATERIAL)
        await keep_for_the_next_turn(answer, answer.complete(), cache)
    assert await kept(cache, answer) == ["What?", "Hi"]
    counts = await in_database(lambda: list(Message.objects.values_list("token_counts", flat=True)))
    assert counts == [{}, {}]


async def test_an_answer_that_was_stopped_before_its_question_was_read_leaves_no_history(publisher, client, cache):
    async with answering(publisher, client, SAYS_HI) as (answer, _):
        await keep_for_the_next_turn(answer, await answer.cancelled(), cache)
    assert await kept(cache, answer) is None


async def test_an_answer_that_failed_leaves_what_was_kept_before_it(publisher, client, cache):
    async with answering(publisher, client, SAYS_HI) as (answer, _):
        await answer.write(MATERIAL)
        await cache.keep(replace(place_after(answer), tip=MATERIAL.path[-1].message_id), History(MATERIAL.path))
        await keep_for_the_next_turn(answer, answer.failed("no_capacity", "Later."), cache)
    assert await cache.find(replace(place_after(answer), tip=MATERIAL.path[-1].message_id)) == History(MATERIAL.path)
    assert await kept(cache, answer) is None
