"""What the model sees: the path to the question, what its user wants of every answer, and nothing of anybody else."""

from itertools import pairwise

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from conversations.context.record import Record
from conversations.models import Conversation, Generation, Memory, Message, Preference
from tests.api_client import text_of
from tests.conversations.prompts import last_prompt, prompts_of, rendered
from tests.own_processes import wait_until


def says(text, question="Go on."):
    return f'@twin {{"text": "{text}"}}\n{question}'


def id_of(events):
    return events[0].data["generation_id"]


def question_of(events):
    return events[0].data["user_message_id"]


def texts(prompt):
    return [content for _, content in prompt]


@pytest.fixture
def entry(redis_store):
    """Waits for the context cache's entry, and returns its key and content once a condition holds."""

    async def find(holds=lambda entry: True):
        def look():
            for name in redis_store.scan_iter(match="*:context:*"):
                content = orjson.loads(redis_store.get(name))
                if holds(content):
                    found.append((name, content))
            return bool(found)

        found = []
        await sync_to_async(wait_until)(look, 10, "the history in the cache")
        return found[0]

    return find


async def test_a_prompt_begins_with_the_one_before_and_its_answer(alice, site):
    conversation_id = await alice.conversation(instructions="Be brief.")
    for number in range(4):
        await alice.send(conversation_id, says(f"Answer {number}."))
    prompts = await prompts_of(site)
    for number, (before, prompt) in enumerate(pairwise(prompts)):
        assert prompt[: len(before) + 1] == [*before, ("assistant", f"Answer {number}.")]


async def test_the_record_of_each_prompt_is_kept_with_its_answer(alice):
    conversation_id = await alice.conversation(instructions="Be brief.")
    await alice.send(conversation_id, says("One."))
    events = await alice.send(conversation_id, says("Two."))
    generation = await Generation.objects.aget(pk=id_of(events))
    record = Record.read(generation.context)
    assert (record.messages_kept, record.messages_dropped, record.is_trimmed) == (3, 0, False)
    assert record.instructions_tokens > 0
    assert record.total_tokens >= record.messages_kept_tokens > 0
    assert record.tokenizer


async def test_an_answer_that_is_stopped_keeps_its_record_too(alice):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, '@twin {"tokens": 500, "token_ms": 20}\nGo') as stream:
        generation_id = (await stream.next()).data["generation_id"]
        await stream.until("token")
        assert (await alice.call("POST", f"/v1/generations/{generation_id}/cancel"))[0] == 204
    generation = await Generation.objects.aget(pk=generation_id)
    assert Record.read(generation.context).messages_kept == 1


async def test_question_and_answer_are_counted_after_the_end(alice, site):
    conversation_id = await alice.conversation()
    await alice.send(conversation_id, says("One, two, three."))

    def counts():
        return list(Message.objects.filter(conversation_id=conversation_id).values_list("token_counts", flat=True))

    await sync_to_async(wait_until)(lambda: all(counts()), 10, "the counts")
    question, answer = await sync_to_async(counts)()
    assert question.keys() == answer.keys()
    assert list(answer.values()) == [6]


async def test_the_parts_of_a_prompt_are_counted_after_the_end(alice):
    conversation_id = await alice.conversation(instructions="Be brief.")
    events = await alice.send(conversation_id, says("One.", question="Größe?"))

    def record():
        return Record.read(Generation.objects.get(pk=id_of(events)).context)

    await sync_to_async(wait_until)(lambda: record().is_exact, 10, "the exact record")
    counted = await sync_to_async(record)()
    question = await Message.objects.aget(pk=question_of(events))
    assert counted.instructions_tokens == 3
    assert counted.messages_kept_tokens == question.token_counts[counted.tokenizer]
    assert counted.total_tokens == events[-1].data["usage"]["in"]


async def test_a_sibling_is_never_in_the_prompt(alice, site):
    conversation_id = await alice.conversation()
    first = await alice.send(conversation_id, says("The first answer."))
    await alice.call("POST", f"/v1/messages/{id_of(first)}/regenerate", {"stream": False})
    await alice.send(conversation_id, says("Beside it.", "Another first question."), parent_id=None)
    await alice.send(conversation_id, says("Last.", "On the first branch."), parent_id=id_of(first))
    assert texts(await last_prompt(site))[1:] == [
        says("The first answer."),
        "The first answer.",
        says("Last.", "On the first branch."),
    ]


async def test_another_answer_is_asked_for_with_the_same_prompt(alice, site):
    conversation_id = await alice.conversation()
    await alice.send(conversation_id, says("One."))
    events = await alice.send(conversation_id, says("Two."))
    await alice.send(conversation_id, says("Three."))
    await alice.call("POST", f"/v1/messages/{id_of(events)}/regenerate", {"stream": False})
    prompts = await prompts_of(site)
    assert prompts[3] == prompts[1]


async def test_an_answer_that_is_continued_is_the_end_of_the_prompt(alice, site):
    conversation_id = await alice.conversation()
    events = await alice.send(conversation_id, '@twin {"tokens": 12}\nCount.', options={"max_tokens": 5})
    status, made = await alice.call("POST", f"/v1/messages/{id_of(events)}/continue", {"stream": False})
    assert status == 200, made
    prompts = await prompts_of(site)
    assert prompts[1] == [*prompts[0], ("assistant", text_of(events))]


async def test_standing_instructions_and_memories_are_in_the_prompt(alice, site):
    user_id = (await Conversation.objects.aget(pk=await alice.conversation())).user_id
    await Preference.objects.acreate(user_id=user_id, instructions="Always answer in verse.")
    memory = await Memory.objects.acreate(
        user_id=user_id, content="Likes tea.", origin="written", confirmed_at=timezone.now()
    )
    conversation_id = await alice.conversation(instructions="Be brief.")
    events = await alice.send(conversation_id, says("One."))
    (role, system), *_ = await last_prompt(site)
    assert role == "system"
    places = [system.index(part) for part in ("Always answer in verse.", "Be brief.", "Likes tea.")]
    assert places == sorted(places)
    record = Record.read((await Generation.objects.aget(pk=id_of(events))).context)
    assert [used.memory_id for used in record.memories] == [memory.pk]

    await memory.adelete()
    await alice.send(conversation_id, says("Two."))
    assert "Likes tea." not in rendered(await last_prompt(site))


async def test_a_temporary_conversation_is_told_no_memories(alice, site):
    user_id = (await Conversation.objects.aget(pk=await alice.conversation())).user_id
    await Memory.objects.acreate(user_id=user_id, content="Likes tea.", origin="written", confirmed_at=timezone.now())
    await alice.send(await alice.conversation(temporary=True), says("One."))
    assert "Likes tea." not in rendered(await last_prompt(site))


async def test_the_next_prompt_is_made_from_the_cache(alice, site, redis_store, entry):
    conversation_id = await alice.conversation()
    await alice.send(conversation_id, says("As it was."))
    name, content = await entry()
    content["history"]["said"][1]["content"] = "As only the cache has it."
    redis_store.set(name, orjson.dumps(content))
    await alice.send(conversation_id, says("Two."))
    assert "As only the cache has it." in texts(await last_prompt(site))


async def test_a_change_of_the_conversation_makes_the_cache_stale(alice, site, redis_store, entry):
    conversation_id = await alice.conversation()
    await alice.send(conversation_id, says("As it was."))
    name, content = await entry()
    content["history"]["said"][1]["content"] = "As only the cache has it."
    redis_store.set(name, orjson.dumps(content))
    await alice.call("PATCH", f"/v1/conversations/{conversation_id}", {"instructions": "Sing."})
    await alice.send(conversation_id, says("Two."))
    (_, system), *_, answer, _ = await last_prompt(site)
    assert system.endswith("Sing.")
    assert answer == ("assistant", "As it was.")


async def test_what_is_cached_of_another_user_s_is_not_used(alice, charlie, site, redis_store, entry):
    secret = await charlie.conversation()
    await charlie.send(secret, says("Charlie's secret."))
    _, charlies = await entry()
    conversation_id = await alice.conversation()
    events = await alice.send(conversation_id, says("Alice's answer."))
    name, alices = await entry(lambda content: content["place"]["tip"] == id_of(events))
    redis_store.set(name, orjson.dumps({**charlies, "place": {**charlies["place"], "tip": id_of(events)}}))
    await alice.send(conversation_id, says("Two."))
    assert texts(await last_prompt(site))[1:] == [says("Alice's answer."), "Alice's answer.", says("Two.")]
    assert alices["place"]["user_id"] != charlies["place"]["user_id"]


async def test_losing_all_that_redis_holds_loses_nothing(alice, site, redis_store, entry, settings):
    conversation_id = await alice.conversation()
    await alice.send(conversation_id, says("One."))
    await entry()
    redis_store.unlink(*redis_store.scan_iter(match=f"{settings.REDIS_KEY_PREFIX}*"))
    await alice.send(conversation_id, says("Two."))
    assert texts(await last_prompt(site))[1:] == [says("One."), "One.", says("Two.")]
