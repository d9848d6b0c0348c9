"""More messages than the model server can answer: who waits, who is refused, and what the refused ones cost."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

import orjson
import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import transaction

from accounts import quotas
from accounts.models import User
from conversations.models import Generation, Message
from foundation.database import in_database
from inference import lua
from inference.fleet_seeding import apply_fleet
from inference.models import Replica
from tests.accounts.factories import make_key, make_user
from tests.api_client import ApiClient, text_of
from tests.running_site import wait_until

ENDLESS = '@twin {"tokens": 5000, "token_ms": 20}\nGo on'
SHORT = '@twin {"tokens": 20, "token_ms": 20}\nGo'
SHEDS = 'chat_sheds_total{model="small",priority_class="free"}'
TIERS = ("enterprise", "plus", "free")


@pytest.fixture
def with_permits(site, redis_store):
    """Gives the only replica so many permits, and waits until the workers know."""

    def change(permits):
        with transaction.atomic():  # no worker is to see the permits that a new replica has
            apply_fleet(f"small={site.twin.url}")
            Replica.objects.update(permits=permits)
        wait_until(lambda: reported_permits(redis_store) == {permits}, what="the new number of permits")

    return change


def reported_permits(redis_store):
    reports = redis_store.hvals(f"{lua.base_key()}:capacity")
    return {orjson.loads(report)["permits"].get("small") for report in reports}


@pytest.fixture
def secrets(site):
    return {tier: make_key(make_user(f"{tier}@example.com", tier=tier)) for tier in TIERS}


@pytest_asyncio.fixture
async def people(secrets, http, site):
    """A user of each tier, with a conversation for each message that they will send."""
    return {tier: ApiClient(http, site.url, secret) for tier, secret in secrets.items()}


async def begin(stack, client, content=SHORT):
    """Send a message in a conversation of its own, and return its stream."""
    return await stack.enter_async_context(client.sending(await client.conversation(), content))


async def chats(site):
    report = await sync_to_async(site.twin.report)()
    return [record for record in report["requests"] if record["path"] == "/v1/chat/completions"]


async def stop(client, stream):
    start = await stream.next()
    status, _ = await client.call("POST", f"/v1/generations/{start.data['generation_id']}/cancel")
    assert status == 204


async def test_who_waits_goes_by_class_and_is_told_so_and_what_is_done_without(people, site, with_permits):
    await in_database(with_permits, 1)
    async with AsyncExitStack() as stack:
        first = await begin(stack, people["enterprise"], ENDLESS)
        await sync_to_async(site.twin.wait)(open=1)
        streams, seen = {}, {}
        for tier in reversed(TIERS):
            streams[tier] = await begin(stack, people[tier])
            seen[tier] = await streams[tier].until("queued")
            assert seen[tier][-1].data["position"] == 1
            assert seen[tier][-1].data["expected_wait_seconds"] > 0
        await stop(people["enterprise"], first)
        for tier in TIERS:
            seen[tier] += await streams[tier].rest()
    order = []
    for tier in TIERS:
        assert seen[tier][-1].data["finish_reason"] == "stop"
        generation = await Generation.objects.aget(pk=seen[tier][0].data["generation_id"])
        order.append(generation.started_at)
        notices = [event.data["code"] for event in seen[tier] if event.type == "notice"]
        assert notices == generation.notices
        assert generation.options["max_tokens"] == (512 if notices else 8192)
    assert order == sorted(order)
    assert notices == ["output_shortened"], "the free user's wait was the longest that is borne"
    assert await counted(people["free"], 'chat_degradations_total{priority_class="free",step="output_shortened"}') >= 1


async def test_a_refused_message_costs_nothing_and_says_when_to_come_again(people, site, with_permits):
    await in_database(with_permits, 1)
    async with AsyncExitStack() as stack:
        running = await begin(stack, people["enterprise"], ENDLESS)
        await sync_to_async(site.twin.wait)(open=1)
        waiting = await begin(stack, people["free"], f"{SHORT}, I wait")
        conversation_id = await people["free"].conversation()
        written = await Message.objects.acount()
        used = await requests_used("free@example.com")
        sheds = await counted(people["free"], SHEDS)
        async with people["free"].sending(conversation_id, f"{SHORT}, I am refused") as refused:
            assert refused.response.status == 503
            assert int(refused.response.headers["Retry-After"]) >= 1
            error = (await refused.response.json())["error"]
        assert (error["code"], error["type"]) == ("overloaded", "server_error")
        assert await Message.objects.acount() == written
        assert await requests_used("free@example.com") == used
        assert await counted(people["free"], SHEDS) == sheds + 1
        await stop(people["free"], waiting)
        async with people["free"].sending(conversation_id, SHORT) as stream:
            await stop(people["enterprise"], running)
            assert (await stream.rest())[-1].data["finish_reason"] == "stop"
    # Asked again after a fault is no fault; asked for nothing is.
    assert {chat["prompt"] for chat in await chats(site)} == {ENDLESS, SHORT}


async def counted(client, series):
    """Return what the web process has counted of this so far."""
    async with client.session.get(f"{client.url}/metrics") as page:
        lines = [line.rpartition(" ") for line in (await page.text()).splitlines()]
    return sum(float(value) for name, _, value in lines if name == series)


async def requests_used(email):
    user = await User.objects.select_related("tier").aget(email=email)
    return (await sync_to_async(quotas.peek)(user)).requests.used


async def test_of_many_at_once_some_are_refused_and_all_others_answered(people, site, with_permits):
    await in_database(with_permits, 3)
    await people["enterprise"].send(await people["enterprise"].conversation(), SHORT)
    async with AsyncExitStack() as stack:
        running = [await begin(stack, people["enterprise"], ENDLESS) for _ in range(3)]
        await sync_to_async(site.twin.wait)(open=3)
        tiers = TIERS * 15
        streams = await asyncio.gather(*(begin(stack, people[tier]) for tier in tiers))
        answers = list(zip(tiers, streams, strict=True))
        for each in running:
            await stop(people["enterprise"], each)
        let_in = [stream for _, stream in answers if stream.response.status == 200]
        reasons = {(await stream.rest())[-1].data["finish_reason"] for stream in let_in}
    assert reasons == {"stop"}, "nothing times out once it is let in"
    refused = Counter(tier for tier, stream in answers if stream.response.status == 503)
    assert refused["enterprise"] == 0
    assert 0 < refused["plus"] < refused["free"]
    assert all(int(stream.response.headers.get("Retry-After", 1)) >= 1 for _, stream in answers)
    begun = 1 + len(running) + len(let_in)
    assert await Generation.objects.acount() == begun
    requests = await chats(site)
    assert len(requests) == begun
    assert most_at_once(requests) == 3


def most_at_once(requests):
    changes = [(each["started_monotonic"], 1) for each in requests] + [
        (each["closed_monotonic"], -1) for each in requests
    ]
    now, most = 0, 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


async def test_what_was_stopped_while_it_waited_gives_its_place_to_the_next(people, site, with_permits, redis_store):
    await in_database(with_permits, 1)
    async with AsyncExitStack() as stack:
        running = await begin(stack, people["enterprise"], ENDLESS)
        await sync_to_async(site.twin.wait)(open=1)
        first, second = [
            await begin(stack, people["enterprise"], text) for text in ("First", '@twin {"text": "Two"}\n.')
        ]
        events = await second.until("queued")
        assert events[-1].data["position"] == 2
        await stop(people["enterprise"], first)
        assert redis_store.hlen(f"{lua.base_key()}:jobs") == 1
        await stop(people["enterprise"], running)
        assert text_of(await second.rest()) == "Two"
