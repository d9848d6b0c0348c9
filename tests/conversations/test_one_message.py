"""One message, step by step, from the POST to the stored answer: `docs/architecture.md` as a test."""

from asgiref.sync import sync_to_async

from accounts.models import UsageRecord
from conversations.models import Conversation, Generation, Message
from tests.api_client import text_of

QUESTION = '@twin {"text": "It means: consistency, availability, partition tolerance. 🤗"}\nExplain CAP'
ANSWER = "It means: consistency, availability, partition tolerance. 🤗"


async def test_a_message_is_stored_answered_streamed_and_settled(alice, site):
    conversation_id = await alice.conversation()

    # The program posts, and its answer is the stream itself.
    async with alice.sending(conversation_id, QUESTION) as stream:
        assert stream.response.status == 200
        assert stream.response.headers["Content-Type"].startswith("text/event-stream")
        assert stream.response.headers["X-Accel-Buffering"] == "no"
        assert stream.response.headers["X-Request-ID"]
        start = await stream.next()

        # What is acknowledged is durable: message, empty answer and generation are in PostgreSQL now.
        assert start.type == "start"
        generation_id = start.data["generation_id"]
        assert start.data["message_id"] == generation_id
        assert start.data["limits"]["requests_remaining"] is not None
        question = await Message.objects.aget(pk=start.data["user_message_id"])
        assert question.content == QUESTION
        assert await Generation.objects.filter(pk=generation_id, conversation_id=conversation_id).aexists()
        events = [start, *await stream.rest()]

    # The tokens come in order, ids grow, and `done` is last.
    ids = [event.id for event in events]
    assert ids == sorted(set(ids))
    assert text_of(events) == ANSWER
    done = events[-1]
    assert (done.type, done.data["finish_reason"], done.data["message_id"]) == ("done", "stop", generation_id)

    # When `done` is sent the answer is committed: text, reason, counts, and the usage record, once.
    generation = await Generation.objects.select_related("message").aget(pk=generation_id)
    assert generation.status == generation.message.status == "complete"
    assert generation.message.content == ANSWER
    assert generation.attempt == 1
    assert generation.first_token_at
    assert generation.replica == site.twin.url
    used = await UsageRecord.objects.aget(generation_id=generation_id)
    assert {"in": used.tokens_in, "cached": used.tokens_cached, "out": used.tokens_out} == done.data["usage"]
    assert used.tokens_in > 0
    assert used.tokens_out > 0

    # The conversation shows the new branch, and the model server holds nothing any more.
    conversation = await Conversation.objects.aget(pk=conversation_id)
    assert str(conversation.active_message_id) == generation_id
    assert conversation.title.startswith("@twin")
    status, page = await alice.call("GET", f"/v1/conversations/{conversation_id}/messages")
    assert status == 200
    assert [(m["role"], m["content"], m["status"]) for m in page["data"]] == [
        ("user", QUESTION, "complete"),
        ("assistant", ANSWER, "complete"),
    ]
    report = await sync_to_async(site.twin.wait)(open=0)
    assert len([r for r in report["requests"] if r["path"] == "/v1/chat/completions"]) == 1


async def test_the_next_turn_shows_the_model_the_whole_branch(alice, site):
    conversation_id = await alice.conversation(instructions="Answer in verse.")
    await alice.send(conversation_id, '@twin {"text": "Roses are red."}\nFirst')
    await alice.send(conversation_id, '@twin {"text": "Violets are blue."}\nSecond')

    requests = (await sync_to_async(site.twin.report)())["requests"]
    last = [r for r in requests if r["path"] == "/v1/chat/completions"][-1]
    body = (await sync_to_async(site.twin.request)(last["number"]))["body"]
    said = [(message["role"], message["content"]) for message in body["messages"]]
    assert said[0][0] == "system"
    assert said[0][1].endswith("Answer in verse.")
    assert said[1:] == [
        ("user", '@twin {"text": "Roses are red."}\nFirst'),
        ("assistant", "Roses are red."),
        ("user", '@twin {"text": "Violets are blue."}\nSecond'),
    ]


async def test_without_a_stream_the_answer_is_one_object(alice):
    conversation_id = await alice.conversation()
    status, message = await alice.call(
        "POST",
        f"/v1/conversations/{conversation_id}/messages",
        {"content": '@twin {"text": "Whole."}\nHi', "stream": False},
    )
    assert status == 200
    assert (message["role"], message["content"], message["status"]) == ("assistant", "Whole.", "complete")
    assert message["finish_reason"] == "stop"
    assert message["generation"]["attempt"] == 1
