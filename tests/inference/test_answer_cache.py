"""The answer cache gives back what was kept for exactly this prompt, among those who may share it, and for a while."""

from dataclasses import replace

import pytest
import pytest_asyncio
from prometheus_client import REGISTRY

from foundation.ids import new_id
from foundation.redis import connect_async, shared_client
from inference import token_stream
from inference.answer_cache import MOST_CHARACTERS, AnswerCache, KnownAnswer, Source, digest_of, forget
from inference.messages import ChatMessage, SamplingOptions
from tests.inference.core.stores import OwnValkey

PROMPT = (ChatMessage("system", "Be brief."), ChatMessage("user", "What is a prime number?"))
OPTIONS = SamplingOptions(256, temperature=0)
SOURCE = Source("small-2", "org/small", "abc123")
ANSWER = KnownAnswer(
    "A number with two divisors. \N{WHITE SMILING FACE}", tokens_in=12, tokens_out=7, model_version="small-2"
)
DIGEST = digest_of(SOURCE, PROMPT, OPTIONS, scope="free")
GENERATION = new_id()


@pytest_asyncio.fixture
async def client():
    async with connect_async() as client:
        yield client


@pytest.fixture
def cache(client):
    return AnswerCache(client, keep_seconds=60)


async def test_what_was_kept_is_found(cache):
    await cache.keep(DIGEST, ANSWER, written_for=GENERATION)
    assert await cache.find(DIGEST) == ANSWER


async def test_what_was_not_kept_is_not_found(cache):
    assert await cache.find(DIGEST) is None


async def test_lookups_are_counted_by_what_they_found(cache):
    before = [lookups(result) for result in ("hit", "miss")]
    await cache.find(DIGEST)
    await cache.keep(DIGEST, ANSWER, written_for=GENERATION)
    await cache.find(DIGEST)
    assert [lookups(result) for result in ("hit", "miss")] == [count + 1 for count in before]


def lookups(result):
    return REGISTRY.get_sample_value("chat_answer_cache_lookups_total", {"result": result}) or 0


async def test_without_a_time_to_keep_nothing_is_kept_or_found(cache, client):
    off = AnswerCache(client, keep_seconds=0)
    await off.keep(DIGEST, ANSWER, written_for=GENERATION)
    assert await cache.find(DIGEST) is None
    await cache.keep(DIGEST, ANSWER, written_for=GENERATION)
    assert await off.find(DIGEST) is None


@pytest.mark.parametrize(
    "other",
    [
        digest_of(SOURCE, PROMPT, OPTIONS, scope="plus"),
        digest_of(replace(SOURCE, version="small-3"), PROMPT, OPTIONS, scope="free"),
        digest_of(replace(SOURCE, model_id="org/other"), PROMPT, OPTIONS, scope="free"),
        digest_of(replace(SOURCE, revision="abc124"), PROMPT, OPTIONS, scope="free"),
        digest_of(SOURCE, PROMPT[1:], OPTIONS, scope="free"),
        digest_of(SOURCE, (ChatMessage("system", "Be long."), PROMPT[1]), OPTIONS, scope="free"),
        digest_of(SOURCE, (PROMPT[0], ChatMessage("user", "What is a prime number? ")), OPTIONS, scope="free"),
        digest_of(SOURCE, (PROMPT[0], PROMPT[1]._replace(role="system")), OPTIONS, scope="free"),
        digest_of(SOURCE, PROMPT, replace(OPTIONS, max_new_tokens=255), scope="free"),
        digest_of(SOURCE, PROMPT, replace(OPTIONS, temperature=0.1), scope="free"),
        digest_of(SOURCE, PROMPT, replace(OPTIONS, top_p=0.9), scope="free"),
        digest_of(SOURCE, PROMPT, replace(OPTIONS, seed=1), scope="free"),
        digest_of(SOURCE, PROMPT, replace(OPTIONS, stop=("\n",)), scope="free"),
    ],
)
async def test_whatever_differs_finds_nothing(cache, other):
    await cache.keep(DIGEST, ANSWER, written_for=GENERATION)
    assert await cache.find(other) is None


def test_text_cannot_pass_for_another_message_or_another_field():
    one = (ChatMessage("user", 'a"}, {"role": "user", "content": "b'),)
    two = (ChatMessage("user", "a"), ChatMessage("user", "b"))
    assert digest_of(SOURCE, one, OPTIONS, scope="free") != digest_of(SOURCE, two, OPTIONS, scope="free")
    assert digest_of(Source("a", "b", ""), one, OPTIONS, scope="") != digest_of(
        Source("a", "", "b"), one, OPTIONS, scope=""
    )


@pytest.mark.parametrize("text", ["", "x" * (MOST_CHARACTERS + 1)])
async def test_an_empty_or_a_long_answer_is_not_kept(cache, text):
    await cache.keep(DIGEST, replace(ANSWER, text=text), written_for=GENERATION)
    assert await cache.find(DIGEST) is None


async def test_an_answer_is_forgotten_with_the_generation_that_it_was_written_for(cache):
    await cache.keep(DIGEST, ANSWER, written_for=GENERATION)
    assert forget(shared_client(), [new_id(), GENERATION]) == 1
    assert await cache.find(DIGEST) is None
    assert forget(shared_client(), [GENERATION]) == 0


async def test_an_answer_of_a_generation_that_is_forgotten_is_not_kept(cache, client):
    token_stream.close_for_good(shared_client(), [GENERATION], 60)
    await cache.keep(DIGEST, ANSWER, written_for=GENERATION)
    assert await cache.find(DIGEST) is None
    assert [name async for name in client.scan_iter(match=f"*{GENERATION}")] == []


async def test_an_answer_is_forgotten_after_its_time(cache, client):
    await cache.keep(DIGEST, ANSWER, written_for=GENERATION)
    [name] = [name async for name in client.scan_iter(match="*answer*")]
    assert 0 < await client.ttl(name) <= 60
    await client.pexpire(name, 0)
    assert await cache.find(DIGEST) is None


@pytest.mark.parametrize("stored", [b"", b"{}", b"[1]", b'{"text": "a"}', b"\xff"])
async def test_what_cannot_be_read_is_not_found(cache, client, stored):
    await cache.keep(DIGEST, ANSWER, written_for=GENERATION)
    [name] = [name async for name in client.scan_iter(match="*answer*")]
    await client.set(name, stored)
    assert await cache.find(DIGEST) is None


@pytest.fixture
def own_valkey(settings):
    valkey = OwnValkey()
    valkey.start()
    settings.REDIS_URL = valkey.url
    yield valkey
    valkey.remove()


async def test_without_redis_nothing_is_found_and_nothing_fails(own_valkey):
    async with connect_async() as client:
        cache = AnswerCache(client, keep_seconds=60)
        await cache.keep(DIGEST, ANSWER, written_for=GENERATION)
        assert await cache.find(DIGEST) == ANSWER
        own_valkey.stop()
        await cache.keep(DIGEST, ANSWER, written_for=GENERATION)
        assert await cache.find(DIGEST) is None


async def test_a_redis_that_does_not_answer_is_not_waited_for(own_valkey):
    async with connect_async() as client:
        cache = AnswerCache(client, keep_seconds=60)
        await cache.keep(DIGEST, ANSWER, written_for=GENERATION)
        own_valkey.command("CLIENT", "PAUSE", "60000", "ALL")
        assert await cache.find(DIGEST) is None
