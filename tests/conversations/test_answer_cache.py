"""A first message that others have asked before is answered from the cache, where site and tier want that."""

from asyncio import TaskGroup

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from accounts.models import Tier, UsageRecord
from conversations.models import Conversation, Generation, Memory, Preference
from inference.testing.answers import expected_answer
from tests.accounts.factories import make_key, make_user
from tests.api_client import ApiClient, text_of
from tests.running_site import running_site, wait_until

QUESTION = '@twin {"tokens": 30, "token_ms": 5}\nWhat is a prime number?'
GREEDY = {"temperature": 0, "max_tokens": 200}


@pytest.fixture(scope="module")
def caching_site(no_other_worker, tmp_path_factory):
    log = tmp_path_factory.mktemp("caching") / "log"
    with running_site(log=log, ANSWER_CACHE_SECONDS="60") as site:
        yield site


@pytest.fixture
def site(caching_site, transactional_db):
    caching_site.twin.reset()
    Tier.objects.filter(name="free").update(uses_answer_cache=True)
    Tier.objects.filter(name="plus").update(uses_answer_cache=True)
    Tier.objects.filter(name="enterprise").update(uses_answer_cache=False)
    return caching_site


@pytest.fixture
def asks(site, http):
    """Asks in a new conversation of a new user's, and returns the events."""

    async def ask(
        *, tier="free", content=QUESTION, options=GREEDY, is_temporary=False, wishes=lambda _: None, **fields
    ):
        client = ApiClient(http, site.url, await sync_to_async(_key_of_somebody)(tier, wishes))
        conversation_id = await client.conversation(**fields)
        await Conversation.objects.filter(pk=conversation_id).aupdate(temporary=is_temporary)
        events = await client.send(conversation_id, content, options=options)
        assert text_of(events) == expected_answer(content)
        return events

    return ask


def _key_of_somebody(tier, wishes):
    user = make_user(tier=tier)
    wishes(user)
    return make_key(user)


def has_standing_instructions(user):
    Preference.objects.create(user=user, instructions="Speak like a pirate.")


def has_a_memory(user):
    Memory.objects.create(user=user, content="Likes primes.", origin="written", confirmed_at=timezone.now())


def kept_count(redis_store):
    return sum(1 for _ in redis_store.scan_iter(match="*:answer:*"))


async def is_kept(redis_store, count=1):
    """The answer is kept after the reader has had its end."""
    await sync_to_async(wait_until)(lambda: kept_count(redis_store) == count, 10, "the answer in the cache")


async def questions(site):
    """Return how often the model server was asked."""
    report = await sync_to_async(site.twin.wait)(open=0)
    return sum(request["path"] == "/v1/chat/completions" for request in report["requests"])


async def test_the_second_to_ask_is_answered_without_a_model_server(asks, site, redis_store):
    first = await asks()
    await is_kept(redis_store)
    second = await asks()
    assert await questions(site) == 1
    assert [event.type for event in second if event.type != "queued"] == ["start", "token", "done"], "all of it at once"
    assert second[-1].data["finish_reason"] == "stop"
    one, other = [await generation_of(events) for events in (first, second)]
    assert other.replica == "cache"
    assert one.replica == site.twin.url
    assert other.model_version == one.model_version != ""
    assert other.message.content == text_of(second)


async def test_a_known_answer_is_paid_like_the_first_with_all_of_its_prompt_as_cached(asks, redis_store):
    first = (await asks())[-1].data["usage"]
    await is_kept(redis_store)
    events = await asks()
    assert events[-1].data["usage"] == {"in": first["in"], "cached": first["in"], "out": first["out"]}
    usage = await UsageRecord.objects.aget(generation_id=events[0].data["generation_id"])
    assert (usage.tokens_in, usage.tokens_cached, usage.tokens_out) == (first["in"], first["in"], first["out"])


async def test_the_next_message_is_answered_by_a_model_server(asks, site, redis_store, charlie):
    await asks()
    await is_kept(redis_store)
    conversation_id = await charlie.conversation()
    for content in (QUESTION, QUESTION):
        events = await charlie.send(conversation_id, content, options=GREEDY)
        assert text_of(events) == expected_answer(content)
    assert await questions(site) == 2
    assert kept_count(redis_store) == 1


async def test_two_who_ask_at_once_are_both_answered(asks, site, redis_store):
    async with TaskGroup() as group:
        for _ in range(2):
            group.create_task(asks())
    assert 1 <= await questions(site) <= 2
    await is_kept(redis_store)


@pytest.mark.parametrize("options", [{}, {"temperature": 0.1}, {"seed": 1}])
async def test_an_answer_that_would_be_another_next_time_is_neither_kept_nor_given(asks, site, options):
    await asks(options=options)
    await asks(options=options)
    assert await questions(site) == 2


async def test_instructions_of_the_users_own_keep_an_answer_theirs(asks, site, redis_store):
    await asks()
    await is_kept(redis_store)
    for _ in range(2):
        await asks(instructions="Speak like a pirate.")
    assert await questions(site) == 3
    assert kept_count(redis_store) == 1


@pytest.mark.parametrize("wishes", [has_standing_instructions, has_a_memory])
async def test_what_a_user_wants_of_every_answer_keeps_it_theirs(asks, site, redis_store, wishes):
    await asks()
    await is_kept(redis_store)
    for _ in range(2):
        await asks(wishes=wishes)
    assert await questions(site) == 3
    assert kept_count(redis_store) == 1


async def test_a_temporary_conversation_neither_gives_nor_takes(asks, site, redis_store):
    await asks(is_temporary=True)
    await asks()
    await is_kept(redis_store)
    await asks(is_temporary=True)
    assert await questions(site) == 3


async def test_a_tier_that_wants_none_is_answered_anew_each_time(asks, site, redis_store):
    await asks(tier="enterprise")
    await asks(tier="enterprise")
    assert await questions(site) == 2
    assert kept_count(redis_store) == 0


async def test_nothing_crosses_from_one_tier_to_another(asks, site, redis_store):
    await asks(tier="free")
    await is_kept(redis_store)
    await asks(tier="plus")
    assert await questions(site) == 2
    await is_kept(redis_store, 2)


async def test_an_answer_that_was_cut_off_is_not_kept(asks, site, redis_store):
    content = '@twin {"tokens": 30, "token_ms": 1, "finish": "length"}\nGo'
    await asks(content=content)
    await asks(content=content)
    assert await questions(site) == 2
    assert kept_count(redis_store) == 0


async def generation_of(events):
    return await Generation.objects.select_related("message").aget(pk=events[0].data["generation_id"])
