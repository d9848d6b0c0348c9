"""A conversation that is deleted while its answer is written: what was decoded is paid, and its place is free."""

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async

from accounts.models import TokenReservation, UsageRecord
from conversations.models import Conversation
from tests.accounts.factories import make_key, make_user
from tests.api_client import ApiClient
from tests.conversations.ledger.books import assert_books_balance
from tests.inference.core.waiting import until

LONG = '@twin {"tokens": 1200, "token_ms": 15}\nGo on and on'


@pytest_asyncio.fixture
async def erin(http, site):
    """Is on a tier that says how many answers may be under way at once."""
    secret = await sync_to_async(lambda: make_key(make_user("erin@example.com", tier="plus")))()
    return ApiClient(http, site.url, secret)


async def under_way(client):
    _, limits = await client.call("GET", "/v1/limits")
    (places,) = [limit["used"] for limit in limits["data"] if limit["name"] == "concurrent_generations"]
    return places


async def by_its_user(client, conversation_id):
    status, _ = await client.call("DELETE", f"/v1/conversations/{conversation_id}")
    assert status == 204


async def without_a_word(_client, conversation_id):
    """As when the word that stops the worker is lost: it finds the row gone at its next checkpoint."""
    await Conversation.objects.filter(pk=conversation_id).adelete()


@pytest.mark.parametrize("delete", [by_its_user, without_a_word])
async def test_what_was_decoded_is_paid_and_the_place_is_free(erin, delete):
    conversation_id = await erin.conversation()
    async with erin.sending(conversation_id, LONG) as stream:
        await stream.until("token", 20)
        assert await under_way(erin) == 1
        await delete(erin, conversation_id)
        await stream.rest()

    async def is_settled():
        return not await TokenReservation.objects.aexists()

    await until(is_settled, seconds=20)
    record = await UsageRecord.objects.aget()
    assert record.tokens_in > 0
    assert record.tokens_out >= 20
    await sync_to_async(assert_books_balance)()

    async def has_room():
        return await under_way(erin) == 0

    await until(has_room, seconds=5)
