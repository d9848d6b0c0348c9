"""Sixty turns through the running product in a small window: its worker writes summaries, its prompts hold them."""

from itertools import pairwise
from uuid import UUID

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async

from conversations.models import Errand, Generation, Message, Summary
from conversations.services import background
from inference.testing.settings import TwinSettings
from tests.accounts.factories import make_key, make_user
from tests.api_client import ApiClient
from tests.conversations.summaries.talks import ANSWER, FACTS, MARK
from tests.inference.core.waiting import until
from tests.running_site import running_site

SMALL_WINDOW = TwinSettings(token_ms=0.2, prefill_ms=1, max_input_tokens=1_099, max_total_tokens=1_100, repeats=MARK)


@pytest.fixture(scope="module")
def small_site(no_other_worker, django_db_blocker, tmp_path_factory):
    log = tmp_path_factory.mktemp("site") / "log"
    with django_db_blocker.unblock(), running_site(twin_settings=SMALL_WINDOW, log=log) as site:
        yield site


@pytest_asyncio.fixture
async def ada(small_site, http, transactional_db):
    secret = await sync_to_async(lambda: make_key(make_user("ada@example.com", tier="enterprise")))()
    return ApiClient(http, small_site.url, secret)


async def ask(client, conversation_id, text):
    """Ask, wait for the answer, and do what Celery does after it."""
    content = f'@twin {{"text": "{ANSWER}"}}\n{text}'
    events = await client.send(conversation_id, content, options={"max_tokens": 100})
    assert events[-1].type == "done", events
    await sync_to_async(background.look_after)(UUID(events[0].data["generation_id"]))
    await settle_all(conversation_id)


async def settle_all(conversation_id):
    under_way = Errand.objects.filter(conversation_id=conversation_id, status__in=("queued", "running"))
    written = Errand.objects.filter(conversation_id=conversation_id, status="written")

    async def is_written():
        return not await under_way.aexists()

    while await under_way.aexists() or await written.aexists():
        await until(is_written, seconds=30)
        for errand_id in [each async for each in written.values_list("pk", flat=True)]:
            await sync_to_async(background.settle)(errand_id)


async def last_prompt(site):
    requests = (await sync_to_async(site.twin.report)())["requests"]
    number = [each["number"] for each in requests if each["path"] == "/v1/chat/completions"][-1]
    return (await sync_to_async(site.twin.request)(number))["body"]["messages"]


@pytest.mark.timeout(300)
async def test_facts_of_the_first_five_turns_are_in_the_prompt_of_the_sixtieth(ada, small_site):
    conversation_id = await ada.conversation()
    for fact in FACTS:
        await ask(ada, conversation_id, fact)
    for _ in range(54):
        await ask(ada, conversation_id, "fact: there are other matters, which are small, but have to be thought of")
    await ada.send(conversation_id, '@twin {"text": "A lot."}\nWhat do you know of us?')

    prompt = await last_prompt(small_site)
    assert prompt[-1]["content"].endswith("What do you know of us?")
    everything = "\n".join(message["content"] for message in prompt)
    assert [fact for fact in FACTS if fact.removeprefix(MARK) in everything] == FACTS

    stored = [each async for each in Summary.objects.filter(conversation_id=conversation_id).order_by("epoch")]
    assert len(stored) > 3
    assert all(after.text.startswith(before.text) for before, after in pairwise(stored))
    assert await Message.objects.filter(conversation_id=conversation_id).acount() == 120
    record = (await Generation.objects.filter(conversation_id=conversation_id).order_by("-message_id").afirst()).context
    assert record["total_tokens"] <= record["budget_tokens"]
    assert record["summary"]["epoch"] > 3
    assert not [each async for each in Errand.objects.exclude(prompt=[])], "the user's words were kept"
