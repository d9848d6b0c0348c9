"""An answer whose worker died is paid for what all attempts at it wrote, whoever comes to end it."""

import asyncio

import pytest

from accounts.models import UsageRecord
from conversations.models import Message
from tests.api_client import text_of

QUESTION = '@twin {"tokens": 2000, "token_ms": 5}\nGo'


@pytest.mark.parametrize("is_stopped_before", [True, False], ids=["before it is taken over", "afterwards"])
async def test_what_a_dead_worker_wrote_is_paid_when_it_is_stopped(alice, site, is_stopped_before):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, QUESTION, background=True) as stream:
        events = await stream.until("token", 20)
        await asyncio.to_thread(site.kill_worker)
        path = f"/v1/generations/{events[0].data['generation_id']}/cancel"
        if is_stopped_before:
            await alice.call("POST", path)
        site.start_worker()
        if not is_stopped_before:
            events += await stream.until("notice")
            events += await stream.until("token")
            await alice.call("POST", path)
        events += await stream.rest()
    message = await Message.objects.aget(pk=events[0].data["message_id"])
    assert message.status == "cancelled"
    assert message.content == text_of(events)
    record = await UsageRecord.objects.aget(pk=message.pk)
    words = len(text_of(events).split())
    assert record.tokens_in > 0
    assert record.tokens_out >= words * 0.9
    assert events[-1].data["usage"]["out"] == record.tokens_out
