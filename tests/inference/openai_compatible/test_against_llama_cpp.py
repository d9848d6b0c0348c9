"""The client and llama.cpp's own server with a real small model."""

import asyncio
from contextlib import aclosing

import aiohttp
import pytest

from inference.events import Piece
from inference.local_server.engine import EngineSettings, RunningEngine
from inference.local_server.fetch import weights_path
from inference.local_server.local_models import SMALL
from inference.messages import ChatMessage
from inference.openai_compatible import OpenAICompatibleClient
from inference.tgi.errors import InvalidRequest, Unauthorized
from tests.inference.tgi.asking import ask, finish_of, request, text_of

pytestmark = pytest.mark.real_model

COUNT = "Count from 1 to 10, comma separated."
WINDOW_TOKENS = 2048


@pytest.fixture(scope="module")
def engine():
    # One thread: on a busy machine two spend most of their time waiting for each other.
    return RunningEngine(
        EngineSettings(weights=weights_path(SMALL), threads=1, parallel=2, window_tokens=WINDOW_TOKENS)
    )


@pytest.fixture
def client(engine, session):
    return OpenAICompatibleClient(engine.url, session=session, api_key=engine.api_key)


async def until_idle(engine):
    async with asyncio.timeout(60), aiohttp.ClientSession(headers={"Connection": "close"}) as session:
        while True:
            async with session.get(
                engine.url + "/slots", headers={"Authorization": f"Bearer {engine.api_key}"}
            ) as response:
                if not any(slot["is_processing"] for slot in await response.json()):
                    return


async def test_an_answer_is_read_whole(client):
    events = await ask(client, request(COUNT, temperature=0, max_new_tokens=60))
    assert all(digit in text_of(events) for digit in "123456789")
    finish = finish_of(events)
    assert finish.reason == "stop"
    assert finish.tokens_in > 30
    assert finish.tokens_out >= 18


async def test_the_token_limit_is_kept(client):
    finish = finish_of(await ask(client, request(COUNT, temperature=0, max_new_tokens=3)))
    assert (finish.reason, finish.tokens_out) == ("length", 3)


async def test_a_stop_string_is_not_in_the_text(client):
    events = await ask(client, request(COUNT, temperature=0, max_new_tokens=60, stop=("4",)))
    assert text_of(events).strip(" ,").endswith("3")
    assert finish_of(events).reason == "stop"


@pytest.mark.parametrize(("partial", "rest"), [("1, 2, 3,", " 4, 5, 6"), ("1, 2, 3, ", "4, 5, 6")])
async def test_a_partial_answer_is_continued_from_its_last_character(client, partial, rest):
    events = await ask(client, request(COUNT, partial=partial, temperature=0, max_new_tokens=40))
    assert text_of(events).startswith(rest)


async def test_a_cancelled_answer_frees_its_slot_while_it_is_written(client, engine):
    async with aclosing(client.stream_chat(request("Write a very long story.", max_new_tokens=1500))) as events:
        assert isinstance(await anext(events), Piece)
    await until_idle(engine)


async def test_answers_can_follow_each_other_on_one_session(client):
    for _ in range(3):
        assert text_of(await ask(client, request("Say hi.", max_new_tokens=4)))


async def test_a_prompt_that_is_too_long_is_an_invalid_request(client):
    with pytest.raises(InvalidRequest):
        await ask(client, request("word " * 3 * WINDOW_TOKENS))


async def test_a_wrong_key_is_unauthorized(engine, session):
    with pytest.raises(Unauthorized):
        await ask(OpenAICompatibleClient(engine.url, session=session, api_key="wrong"))


async def test_its_facts_are_read(client):
    assert await client.is_healthy()
    assert (await client.info()).max_total_tokens == WINDOW_TOKENS


async def test_counted_tokens_are_those_that_an_answer_reads(client):
    asked = request("Hello there", max_new_tokens=1)
    counted = await client.count_tokens(asked.messages)
    assert finish_of(await ask(client, asked)).tokens_in == counted
    continued = await client.count_tokens([*asked.messages, ChatMessage("assistant", "Hi you")])
    assert continued > counted


async def test_a_text_is_counted_without_what_the_template_adds(client):
    alone, twice = await client.count_text("Hello there"), await client.count_text("Hello there Hello there")
    assert (alone, twice) == (2, 4)
    assert await client.count_text("<|im_end|>") == 1, "as in a prompt, a special token's name is that token"
