"""What is remembered reaches the next prompt, and what is forgotten reaches none."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from accounts.models import Tier
from conversations.models import Generation, Memory
from tests.conversations.prompts import last_prompt

pytestmark = pytest.mark.django_db(transaction=True)
CAT = "I have a cat named Mu"


async def remembered(client, content=CAT):
    status, memory = await client.call("POST", "/v1/memories", {"content": content})
    assert status == 201, memory
    return f"/v1/memories/{memory['memory_id']}"


async def told(client, site, content="Hello", **fields):
    """Begin a conversation; return what stands before it in the prompt."""
    await client.send(await client.conversation(**fields), content)
    return await system_text(site)


async def system_text(site):
    return "".join(content for role, content in await last_prompt(site) if role == "system")


async def test_memories_and_standing_instructions_reach_the_next_prompt(alice, site):
    await remembered(alice)
    await alice.call("PATCH", "/v1/preferences", {"instructions": "Answer in Dutch."})
    text = await told(alice, site)
    assert CAT in text
    assert "Answer in Dutch." in text


async def test_what_a_message_asks_to_remember_is_told_in_other_conversations_and_its_reader_is_told(alice, site):
    events = await alice.send(await alice.conversation(), f"Remember that {CAT}. How old is it?")
    notices = [event.data for event in events if event.type == "notice"]
    assert [notice["code"] for notice in notices] == ["memory_saved"]
    assert notices[0]["message"]
    assert f"{CAT}." in await told(alice, site)


async def test_whoever_follows_an_answer_after_its_end_is_told_too_and_nobody_twice(alice, site):
    events = await alice.send(await alice.conversation(), f"Remember that {CAT}. How old is it?")
    generation_id = events[0].data["generation_id"]
    again = await alice.follow(generation_id)
    assert [event.data for event in again if event.type == "notice"] == [
        event.data for event in events if event.type == "notice"
    ]
    assert [event.type for event in again][:3] == ["start", "notice", "token"]
    (notice,) = [event for event in events if event.type == "notice"]
    rest = await alice.follow(generation_id, after=notice.id)
    assert "notice" not in [event.type for event in rest]


async def test_a_deleted_memory_is_in_no_later_prompt_not_even_of_the_same_conversation(alice, site):
    path = await remembered(alice)
    conversation_id = await alice.conversation()
    first = (await alice.send(conversation_id, "Hello"))[0].data["message_id"]
    assert CAT in await system_text(site)
    assert (await alice.call("DELETE", path))[0] == 204
    await alice.send(conversation_id, "And now?")
    assert CAT not in str(await last_prompt(site))
    await alice.call("POST", f"/v1/messages/{first}/regenerate", {"stream": False})
    assert CAT not in str(await last_prompt(site))
    records = await sync_to_async(list)(Generation.objects.values_list("context", flat=True))
    assert len(records) == 3
    assert CAT not in str(records)


async def test_a_memory_that_is_off_expired_or_only_proposed_is_not_told(alice, site):
    path = await remembered(alice)
    past = timezone.now() - timedelta(seconds=1)
    for change, back in (
        ({"enabled": False}, {"enabled": True}),
        ({"expires_at": past}, {"expires_at": None}),
        ({"confirmed_at": None}, {"confirmed_at": past}),
    ):
        await Memory.objects.aupdate(**change)
        assert CAT not in await told(alice, site), change
        await Memory.objects.aupdate(**back)
        assert CAT in await told(alice, site), back
    await alice.call("PATCH", path, {"content": "I have a dog named Wu"})
    text = await told(alice, site)
    assert CAT not in text
    assert "a dog named Wu" in text


async def test_who_uses_no_memories_is_known_to_no_model(alice, site):
    await remembered(alice)
    await alice.call("PATCH", "/v1/preferences", {"uses_memories": False})
    assert CAT not in await told(alice, site)
    assert "green tea" not in await told(alice, site, "Remember that I like green tea.")
    await alice.call("PATCH", "/v1/preferences", {"uses_memories": True})
    text = await told(alice, site)
    assert CAT in text
    assert "green tea" not in text


async def test_a_temporary_conversation_is_told_no_memory_and_writes_none(alice, site):
    await remembered(alice)
    await alice.call("PATCH", "/v1/preferences", {"instructions": "Answer in Dutch."})
    text = await told(alice, site, "Remember that I like green tea.", temporary=True)
    assert CAT not in text
    assert "Answer in Dutch." in text
    assert "green tea" not in await told(alice, site)


async def test_nobody_elses_memories_are_told(alice, charlie, site):
    await remembered(alice)
    await alice.call("PATCH", "/v1/preferences", {"instructions": "Answer in Dutch."})
    text = await told(charlie, site)
    assert CAT not in text
    assert "Dutch" not in text


async def test_a_prompt_has_as_many_memories_as_the_users_tier_allows(alice, site):
    await remembered(alice, "The older fact")
    await remembered(alice, "The newer fact")
    await Tier.objects.filter(pk="enterprise").aupdate(most_memories=1)
    text = await told(alice, site)
    assert "The newer fact" in text
    assert "The older fact" not in text
