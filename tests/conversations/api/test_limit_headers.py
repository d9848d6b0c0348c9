"""Every call that counts against limits says where one stands with them, also the one that is refused."""

from asgiref.sync import sync_to_async

from accounts.models import Tier

STORY = '@twin {"text": "Once upon a time there was a king."}\nGo'
NAMES = {f"x-ratelimit-{what}-{of}" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens")}


async def headers_of(client, path, body, status=200):
    async with client.session.post(client.url + path, json=body, headers=client.headers) as response:
        await response.read()
        assert response.status == status
        return response.headers


async def test_sending_regenerating_and_continuing_tell_requests_and_tokens(charlie):
    conversation_id = await charlie.conversation()
    path = f"/v1/conversations/{conversation_id}/messages"
    await headers_of(charlie, path, {"content": STORY, "stream": False, "options": {"max_tokens": 3}})
    _, conversation = await charlie.call("GET", f"/v1/conversations/{conversation_id}")
    message = f"/v1/messages/{conversation['active_message_id']}"
    calls = [(f"{message}/continue", {}), (f"{message}/regenerate", {}), (path, {"content": STORY})]
    for used, (address, body) in enumerate(calls, start=2):
        headers = await headers_of(charlie, address, body)
        assert headers.keys() >= NAMES
        assert int(headers["x-ratelimit-remaining-requests"]) == 40 - used
        assert 0 < int(headers["x-ratelimit-remaining-tokens"]) < int(headers["x-ratelimit-limit-tokens"]) == 100_000


async def test_a_refusal_tells_them_too_and_when_to_come_again(charlie):
    await sync_to_async(Tier.objects.filter(pk="free").update)(requests_per_window=0)
    path = f"/v1/conversations/{await charlie.conversation()}/messages"
    headers = await headers_of(charlie, path, {"content": STORY}, status=429)
    assert headers.keys() >= NAMES
    assert headers["x-ratelimit-remaining-requests"] == "0"
    assert int(headers["Retry-After"]) >= 1
