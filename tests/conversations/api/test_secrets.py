"""What people say and what opens their accounts is in no log, and in Redis only while an answer is written."""

import json

import redis
from django.conf import settings

from tests.accounts.factories import make_key, make_user
from tests.api_client import ApiClient

CANARY = "canary-6f1d-heard-only-by-the-model"
TITLE = "canary-71c2-title"
INSTRUCTIONS = "canary-90aa-instructions"
ANSWER = "canary-b3e8-answer"


async def test_neither_words_nor_keys_reach_the_log(alice, alice_secret, site, http):
    conversation_id = await alice.conversation(title=TITLE, instructions=INSTRUCTIONS)
    directive = "@twin " + json.dumps({"text": ANSWER})
    await alice.send(conversation_id, f"{directive}\n{CANARY}", headers={"Idempotency-Key": CANARY})
    await alice.send(conversation_id, '@twin {"tokens": 3, "fault": {"kind": "plain_422", "always": true}}\n' + CANARY)
    path = f"/v1/conversations/{conversation_id}/messages"
    for body in ({"content": CANARY, "model": CANARY}, {"content": CANARY, CANARY: 1}, {"content": 5, "model": CANARY}):
        status, _ = await alice.call("POST", path, body)
        assert status in (404, 422)
    headers = {**alice.headers, "Content-Type": "application/json"}
    async with http.post(site.url + path, data=f'{{"content": "{CANARY}"', headers=headers) as response:
        assert response.status == 400
    stranger = ApiClient(http, site.url, "ck_" + CANARY.ljust(43, "x")[:43])
    assert (await stranger.call("GET", "/v1/models"))[0] == 401
    stranger.headers = {"Authorization": f"Bearer {CANARY}.{CANARY}.{CANARY}"}
    assert (await stranger.call("POST", path, {"content": CANARY}))[0] == 401

    logged = site.log.read_text(errors="replace")
    assert "reply_ended" in logged
    for secret in (CANARY, TITLE, INSTRUCTIONS, ANSWER, alice_secret, alice_secret[10:]):
        assert secret not in logged


async def test_redis_holds_the_answer_only_in_its_own_stream_and_never_the_question(alice, alice_secret, site):
    conversation_id = await alice.conversation(title=TITLE, instructions=INSTRUCTIONS)
    directive = "@twin " + json.dumps({"text": ANSWER})
    events = await alice.send(conversation_id, f"{directive}\n{CANARY}")
    generation_id = events[0].data["generation_id"]
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        holding = {secret: set() for secret in (CANARY, TITLE, INSTRUCTIONS, ANSWER, alice_secret)}
        for key in client.scan_iter(match=f"{settings.REDIS_KEY_PREFIX}*", count=1000):
            kept = client.dump(key) or b""
            for secret, keys in holding.items():
                if secret.encode() in kept:
                    keys.add(key.decode())
            if generation_id.encode() in key:
                assert 0 < client.ttl(key) <= settings.STREAM_KEEP_SECONDS
    assert all(generation_id in key for key in holding.pop(ANSWER))
    assert holding == {CANARY: set(), TITLE: set(), INSTRUCTIONS: set(), alice_secret: set()}


async def test_a_deleted_conversation_leaves_no_word_in_redis(alice, site):
    conversation_id = await alice.conversation()
    await alice.send(conversation_id, "@twin " + json.dumps({"text": ANSWER}) + "\nGo")
    await alice.call("DELETE", f"/v1/conversations/{conversation_id}")
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        for key in client.scan_iter(match=f"{settings.REDIS_KEY_PREFIX}*", count=1000):
            assert ANSWER.encode() not in (client.dump(key) or b""), key


def test_a_key_is_told_once_only(client, db):
    user = make_user()
    headers = {"Authorization": f"Bearer {make_key(user)}"}
    made = client.post("/v1/api-keys", {"scopes": ["read"]}, content_type="application/json", headers=headers)
    assert made["Cache-Control"] == "no-store"
    assert made.json()["key"] not in client.get("/v1/api-keys", headers=headers).text
