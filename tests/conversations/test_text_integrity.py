"""Text that has hurt others passes unchanged."""

import json

import pytest

from conversations.models import Message
from tests.api_client import text_of

FAMILY = "\U0001f468‍\U0001f469‍\U0001f467"
HARMLESS = {
    "emoji": "Hi 🤗😄" * 5,
    "family and flags": f"{FAMILY} 🇩🇪🇫🇷 👍🏽 é",
    "line separators": "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg",
    "framing words": "data: [DONE]\n\nevent: error\n: ping\nid: 7\r\n\r\ndata: {}",
    "only a newline": "\n",
    "only a space": " ",
    "leading blanks": "   indented\n\tcode",
    "a table": "| A | B |\n|---|---|\n| 1 | 2 |\n",
    "Korean": " 기니다 안녕하세요",
    "Devanagari": "नमस्ते क्षत्रिय",
    "quotes": '"\\" \\u2028 \\n {"type":"done"}',
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS.keys())
async def test_an_answer_arrives_and_is_stored_byte_for_byte(alice, text):
    pieces = ["Say: ", *text]
    conversation_id = await alice.conversation()
    events = await alice.send(conversation_id, f"@twin {json.dumps({'pieces': pieces})}\nGo")
    assert text_of(events) == "Say: " + text
    stored = await Message.objects.aget(pk=events[0].data["message_id"])
    assert stored.content == "Say: " + text


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS.keys())
async def test_a_question_is_stored_byte_for_byte(alice, text):
    conversation_id = await alice.conversation()
    content = f'@twin {{"text": "ok"}}\n{text}'
    events = await alice.send(conversation_id, content)
    stored = await Message.objects.aget(pk=events[0].data["user_message_id"])
    assert stored.content == content


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"content": "a\\u0000b"}', 422, "invalid_request"),
        (b'{"content": "a\\ud83cb"}', 422, "invalid_request"),
        (b'{"content": "\\udf78"}', 422, "invalid_request"),
        (b'{"content": "   \\n "}', 422, "invalid_request"),
        (b'{"content": ""}', 422, "invalid_request"),
        (b"{}", 422, "invalid_request"),
        (b'{"content": 7}', 422, "invalid_request"),
        (b'{"content": null}', 422, "invalid_request"),
        (b'{"content": "hi", "contnet": "typo"}', 422, "invalid_request"),
        (b'{"content": "hi", "options": {"temprature": 1}}', 422, "invalid_request"),
        (b'{"content": "hi", "options": {"max_tokens": 0}}', 422, "invalid_request"),
        (b'{"content": "hi", "model": "gigantic"}', 404, "not_found"),
        (b'{"content": "hi"', 400, "malformed_json"),
        (b"[]", 422, "invalid_request"),
        (b"\xff\xfe", 400, "malformed_json"),
        (b"[" * 100_000, 400, "malformed_json"),
    ],
)
async def test_bad_input_is_refused_with_a_sentence_and_stores_nothing(alice, body, status, code):
    conversation_id = await alice.conversation()
    headers = {**alice.headers, "Content-Type": "application/json"}
    url = f"{alice.url}/v1/conversations/{conversation_id}/messages"
    async with alice.session.post(url, data=body, headers=headers) as response:
        answer = await response.json()
        assert (response.status, answer["error"]["code"]) == (status, code), answer
        assert len(answer["error"]["message"]) > 10
    assert not await Message.objects.filter(conversation_id=conversation_id).aexists()


async def test_a_surrogate_pair_in_json_is_one_character(alice):
    conversation_id = await alice.conversation()
    headers = {**alice.headers, "Content-Type": "application/json"}
    url = f"{alice.url}/v1/conversations/{conversation_id}/messages"
    body = b'{"content": "@twin {\\"text\\": \\"ok\\"}\\n\\ud83c\\udf78", "stream": false}'
    async with alice.session.post(url, data=body, headers=headers) as response:
        assert response.status == 200
    question = await Message.objects.aget(conversation_id=conversation_id, role="user")
    assert question.content.endswith("\n\U0001f378")


@pytest.mark.parametrize("kind", ["nul", "lone_surrogate"])
async def test_what_a_model_may_not_say_becomes_a_replacement_character(alice, kind):
    conversation_id = await alice.conversation()
    wish = json.dumps({"tokens": 6, "fault": {"kind": kind, "after": 2}})
    events = await alice.send(conversation_id, f"@twin {wish}\nGo")
    stored = await Message.objects.aget(pk=events[0].data["message_id"])
    assert stored.content == text_of(events)
    assert stored.status == "complete"
    assert "\ufffd" in stored.content


async def test_a_line_of_a_megabyte_passes(alice):
    conversation_id = await alice.conversation()
    wish = json.dumps({"tokens": 6, "fault": {"kind": "huge_token", "after": 2, "bytes": 1_100_000}})
    events = await alice.send(conversation_id, f"@twin {wish}\nGo")
    stored = await Message.objects.aget(pk=events[0].data["message_id"])
    assert stored.content == text_of(events)
    assert len(stored.content) > 1_100_000
    assert stored.finish_reason == "stop"
