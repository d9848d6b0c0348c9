"""Whatever the shape of the tree, a model sees the path to its question and never a sibling."""

import pytest_asyncio
from asgiref.sync import sync_to_async


def say(text):
    return f'@twin {{"text": "{text}"}}\nGo'


@pytest_asyncio.fixture
async def last_prompt(site):
    """What the model was asked last: questions and answers, without instructions."""

    async def read():
        requests = (await sync_to_async(site.twin.report)())["requests"]
        body = (await sync_to_async(site.twin.request)(requests[-1]["number"]))["body"]
        return [message["content"] for message in body["messages"] if message["role"] != "system"]

    return read


async def send(client, conversation_id, text, **fields):
    """Send a message and return the start event's data."""
    return (await client.send(conversation_id, say(text), **fields))[0].data


async def show(client, conversation_id, message_id):
    status, _ = await client.call("PATCH", f"/v1/conversations/{conversation_id}", {"active_message_id": message_id})
    assert status == 200


async def regenerate(client, message_id):
    status, answer = await client.call("POST", f"/v1/messages/{message_id}/regenerate", {"stream": False})
    assert status == 200
    return answer["message_id"]


async def test_an_edited_first_question_has_nothing_before_it(alice, last_prompt):
    conversation_id = await alice.conversation()
    await send(alice, conversation_id, "A")
    await send(alice, conversation_id, "B")
    await send(alice, conversation_id, "edited", parent_id=None)
    assert await last_prompt() == [say("edited")]
    await send(alice, conversation_id, "C")
    assert await last_prompt() == [say("edited"), "edited", say("C")]


async def test_a_branch_from_the_middle_sees_only_what_is_above_it(alice, last_prompt):
    conversation_id = await alice.conversation()
    first = await send(alice, conversation_id, "A")
    for text in ("B", "C"):
        await send(alice, conversation_id, text)
    await send(alice, conversation_id, "D", parent_id=first["message_id"])
    assert await last_prompt() == [say("A"), "A", say("D")]
    await send(alice, conversation_id, "E")
    assert await last_prompt() == [say("A"), "A", say("D"), "D", say("E")]


async def test_of_two_roots_each_has_its_own_story(alice, last_prompt):
    conversation_id = await alice.conversation()
    first = await send(alice, conversation_id, "A")
    await send(alice, conversation_id, "B", parent_id=None)
    await send(alice, conversation_id, "C", parent_id=first["message_id"])
    assert await last_prompt() == [say("A"), "A", say("C")]


async def test_a_regenerated_answer_is_written_to_the_same_prompt_as_its_sibling(alice, last_prompt):
    conversation_id = await alice.conversation()
    await send(alice, conversation_id, "A")
    second = await send(alice, conversation_id, "B")
    prompt = await last_prompt()
    await regenerate(alice, second["message_id"])
    assert await last_prompt() == prompt == [say("A"), "A", say("B")]


async def test_what_is_said_next_follows_the_sibling_that_is_shown(alice, last_prompt):
    conversation_id = await alice.conversation()
    question = '@twin {"tokens": 4}\nGo'
    short = (await alice.send(conversation_id, question, options={"max_tokens": 2}))[0].data["message_id"]
    long = await regenerate(alice, short)
    texts = {}
    for message_id in (short, long):
        _, generation = await alice.call("GET", f"/v1/generations/{message_id}")
        texts[message_id] = generation["message"]["content"]
    assert texts[short] != texts[long]
    for message_id in (long, short):
        await show(alice, conversation_id, message_id)
        await send(alice, conversation_id, "Next")
        assert await last_prompt() == [question, texts[message_id], say("Next")]


async def test_a_branch_that_is_shown_again_goes_on_where_it_was(alice, last_prompt):
    conversation_id = await alice.conversation()
    first = await send(alice, conversation_id, "A")
    second = await send(alice, conversation_id, "B")
    await send(alice, conversation_id, "C", parent_id=first["message_id"])
    await show(alice, conversation_id, second["message_id"])
    await send(alice, conversation_id, "D")
    assert await last_prompt() == [say("A"), "A", say("B"), "B", say("D")]


async def test_an_answer_and_its_continuation_are_one_to_the_model(alice, last_prompt):
    conversation_id = await alice.conversation()
    events = await alice.send(
        conversation_id, '@twin {"text": "One two three four five six."}\nGo', options={"max_tokens": 2}
    )
    path = f"/v1/messages/{events[0].data['message_id']}/continue"
    status, first = await alice.call("POST", path, {"stream": False, "options": {"max_tokens": 2}})
    assert status == 200
    status, _ = await alice.call("POST", f"/v1/messages/{first['message_id']}/continue", {"stream": False})
    assert status == 200
    await send(alice, conversation_id, "Next")
    assert (await last_prompt())[1:] == ["One two three four five six.", say("Next")]


async def test_a_fork_is_asked_with_the_same_prompt(alice, last_prompt):
    conversation_id = await alice.conversation()
    for text in ("A", "B"):
        await send(alice, conversation_id, text)
    status, made = await alice.call("POST", f"/v1/conversations/{conversation_id}/fork", {})
    assert status == 201
    await send(alice, made["conversation_id"], "C")
    assert await last_prompt() == [say("A"), "A", say("B"), "B", say("C")]


async def test_an_answer_tells_what_its_model_saw(alice):
    conversation_id = await alice.conversation(instructions="Be brief.")
    await send(alice, conversation_id, "A")
    start = await send(alice, conversation_id, "B")
    status, told = await alice.call("GET", f"/v1/generations/{start['generation_id']}/context")
    assert status == 200
    assert told["context"]["instructions"]["text"] == "Be brief."
    assert told["context"]["kept"]["count"] == 3
    assert [each["role"] for each in told["context"]["kept"]["messages"]] == ["user", "assistant", "user"]
