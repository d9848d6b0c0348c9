"""An erased account leaves no word in PostgreSQL, Redis, files and logs, whatever its answers and workers are doing."""

import asyncio
import signal
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from redis.exceptions import RedisError

from accounts.erasure import receipts, work
from accounts.erasure.closing import request_erasure
from accounts.models import Erasure, Tier, TokenReservation, UsageRecord, User
from conversations.models import Conversation, Errand, Generation, Memory, Message
from foundation.redis import shared_client
from inference.token_stream import events_key
from tests.accounts.erasure.everything import rows_with
from tests.accounts.erasure.steps import erase_from_every_store, erase_wholly
from tests.accounts.factories import make_key, make_user
from tests.api_client import ApiClient, text_of
from tests.inference.core.stores import OwnValkey
from tests.running_site import running_site, wait_until

WORD = "canarybird"
QUESTION = f'@twin {{"text": "So you keep a {WORD}."}}\nMy pet is a {WORD}'
ENDLESS = f'@twin {{"tokens": 4000, "token_ms": 20}}\nMore of my {WORD}'
GREEDY = {"temperature": 0, "max_tokens": 200}


@pytest.fixture(scope="module")
def erasing_site(no_other_worker, tmp_path_factory):
    home = tmp_path_factory.mktemp("erasing")
    environment = {
        "ANSWER_CACHE_SECONDS": "600",
        "DATA_DIR": str(home / "data"),
        "EMAIL_URL": f"filemail:///{home}/mail",
    }
    (home / "mail").mkdir()
    with running_site(log=home / "log", **environment) as site, site.celery():
        yield site


@pytest.fixture
def site(erasing_site, transactional_db):
    erasing_site.twin.reset()
    Tier.objects.update(uses_answer_cache=True)
    return erasing_site


@pytest.fixture
def carol(site):
    return make_user(f"{WORD}@example.com", name=f"{WORD} name", tier="enterprise")


@pytest.fixture
def program(carol, http, site):
    return ApiClient(http, site.url, make_key(carol, name=f"{WORD} key"))


def said_in_redis(client, word):
    """Return the names of the keys whose name or value holds a word."""
    return [name.decode() for name in client.scan_iter(count=1000) if word.encode() in name + _value(client, name)]


def _value(client, name):
    match client.type(name):
        case b"string":
            return client.get(name) or b""
        case b"hash":
            return repr(client.hgetall(name)).encode()
        case b"list":
            return repr(client.lrange(name, 0, -1)).encode()
        case b"set":
            return repr(client.smembers(name)).encode()
        case b"zset":
            return repr(client.zrange(name, 0, -1)).encode()
        case b"stream":
            return repr(client.xrange(name)).encode()
        case b"none":
            return b""  # its time has just come
    raise AssertionError(f"say here how {name} is read")


def said_in_files(folder, word):
    return [path for path in Path(folder).rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def is_completed(erasure_id):
    return Erasure.objects.filter(pk=erasure_id).exclude(completed_at=None).exists()


async def test_no_store_holds_a_word_of_an_account_that_was_erased_in_the_midst_of_an_answer(
    program, carol, charlie, site, redis_store
):
    await program.call("PUT", "/v1/preferences", {"instructions": ""})
    conversation_id = await program.conversation()
    assert WORD in text_of(await program.send(conversation_id, QUESTION, options=GREEDY))
    await program.call("POST", "/v1/memories", {"content": f"Keeps a {WORD}."})
    await program.conversation(title=f"{WORD} title", instructions=f"Speak of a {WORD}.")
    others = await charlie.conversation(title="Of somebody else")
    await sync_to_async(wait_until)(lambda: said_in_redis(redis_store, WORD), 10, "something in Redis")
    assert await sync_to_async(rows_with)(WORD)

    async with program.sending(conversation_id, ENDLESS) as stream:
        await stream.until("token")
        status, told = await program.call("DELETE", "/v1/account")
        assert status == 202
        async with asyncio.timeout(10):
            await stream.rest()
    assert (await program.call("GET", "/v1/conversations"))[0] == 401
    await sync_to_async(wait_until)(lambda: is_completed(told["erasure_id"]), 30, "the end of the erasure")
    await sync_to_async(site.twin.wait)(open=0)

    assert await sync_to_async(rows_with)(WORD) == {}
    assert await sync_to_async(rows_with)(str(carol.pk)) == {}
    assert said_in_redis(redis_store, WORD) == []
    assert said_in_redis(redis_store, str(carol.pk)) == []
    assert said_in_files(site.environment["DATA_DIR"], WORD) == []
    assert WORD not in site.log.read_text()
    assert (await charlie.call("GET", f"/v1/conversations/{others}"))[0] == 200
    async with program.session.get(told["receipt_url"], headers={"Accept": "application/json"}) as response:
        assert (await response.json())["status"] == "completed"


async def test_a_worker_that_finishes_late_brings_nothing_back(program, carol, charlie, site, redis_store):
    conversation_id = await program.conversation()
    async with program.sending(conversation_id, ENDLESS, background=True) as stream:
        start = (await stream.until("token"))[0]
        generation_id = start.data["generation_id"]
        worker = site.workers[0]
        worker.send_signal(signal.SIGSTOP)
        try:
            erasure = await sync_to_async(request_erasure)(carol.pk)
            await sync_to_async(wait_until)(lambda: is_completed(erasure.pk), 30, "the end of the erasure")
        finally:
            worker.send_signal(signal.SIGCONT)
    await sync_to_async(site.twin.wait)(open=0)
    # The worker has done all that it did before it takes the next one.
    assert text_of(await charlie.send(await charlie.conversation(), "Hello"))
    for model in (User, Conversation, Message, Generation, UsageRecord, TokenReservation, Errand, Memory):
        left = model.objects.filter(pk=carol.pk) if model is User else _of(model, carol)
        assert not await left.aexists(), model
    assert not redis_store.exists(events_key(generation_id))
    assert said_in_redis(redis_store, WORD) == []
    assert await sync_to_async(rows_with)(str(carol.pk)) == {}


def _of(model, user):
    if model is Message:
        return Message.objects.filter(conversation__user=user.pk)
    return model.objects.filter(user=user.pk)


@pytest.fixture
def own_valkey(settings):
    valkey = OwnValkey()
    valkey.start()
    settings.REDIS_URL = valkey.url
    shared_client.cache_clear()
    yield valkey
    shared_client.cache_clear()
    valkey.remove()


@pytest.mark.django_db(transaction=True)
def test_while_redis_is_away_no_conversation_is_erased_and_afterwards_all_are(own_valkey):
    user = make_user()
    conversation = Conversation.objects.create(user=user)
    shared_client().ping()
    own_valkey.stop()
    erasure_id = request_erasure(user.pk).pk
    with pytest.raises(RedisError):
        erase_from_every_store(erasure_id)
    with pytest.raises(RedisError):
        work.erase_from(erasure_id, "conversations")
    assert Conversation.objects.filter(pk=conversation.pk).exists()
    receipts.mail(erasure_id)
    assert not work.end(erasure_id)
    own_valkey.start()
    erase_wholly(erasure_id)
    assert not Conversation.objects.exists()
