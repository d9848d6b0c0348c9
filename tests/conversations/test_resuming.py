"""A client that lost its connection asks for the rest, and gets every later event once, in order."""

import asyncio
import json
import random

import pytest

from inference.positions import Position
from tests.api_client import text_of

TEXT = "".join(f"Satz {n}: größer ≥ 0 🤗, 数{n}. " for n in range(60))
QUESTION = f"@twin {json.dumps({'text': TEXT, 'token_ms': 3})}\nGo"


def joined(cuts):
    return [event for part in cuts for event in part]


async def cut_and_resume(client, conversation_id, question, dice):
    """Read an answer in pieces: after each few events the connection is cut, and resumed at the last id."""
    parts = []
    # In the background: a busy machine may need longer to come back than the grace time that tests give.
    async with client.sending(conversation_id, question, background=True) as stream:
        parts.append([await stream.next() for _ in range(dice.randint(1, 6))])
    generation_id = parts[0][0].data["generation_id"]
    cuts = 1
    while parts[-1][-1].type != "done":
        async with client.following(generation_id, parts[-1][-1].id) as stream:
            assert stream.response.status == 200
            part = []
            for _ in range(dice.randint(1, 12)):
                event = await stream.next()
                part.append(event)
                if event.type == "done":
                    break
            parts.append(part)
            cuts += 1
    return generation_id, joined(parts), cuts


async def test_five_hundred_cuts_leave_no_gap_and_no_repetition(alice):
    dice = random.Random(7)
    cuts = 0
    while cuts < 500:
        conversations = [await alice.conversation() for _ in range(4)]
        results = await asyncio.gather(*(cut_and_resume(alice, each, QUESTION, dice) for each in conversations))
        for generation_id, events, count in results:
            ids = [event.id for event in events]
            assert ids == sorted(set(ids))
            assert text_of(events) == TEXT
            assert [e.type for e in events if e.type not in ("token", "queued")] == ["start", "done"]
            status, generation = await alice.call("GET", f"/v1/generations/{generation_id}")
            assert status == 200
            assert generation["message"]["content"] == TEXT
            cuts += count


async def test_two_followers_see_the_same(alice):
    conversation_id = await alice.conversation()
    async with alice.sending(conversation_id, QUESTION) as stream:
        start = await stream.next()
        others = [asyncio.create_task(alice.follow(start.data["generation_id"])) for _ in range(5)]
        own = [start, *await stream.rest()]
        for other in others:
            events = await other
            assert text_of(events) == text_of(own) == TEXT
            assert events[-1] == own[-1]


async def test_resuming_at_any_byte_gives_exactly_the_rest(alice):
    conversation_id = await alice.conversation()
    text = "aé数🤗b" * 3
    events = await alice.send(conversation_id, f"@twin {json.dumps({'text': text})}\nGo")
    generation_id = events[0].data["generation_id"]
    encoded = text.encode()
    for offset in range(len(encoded) + 1):
        is_boundary = offset == len(encoded) or encoded[offset] & 0xC0 != 0x80
        rest = await alice.follow(generation_id, Position(offset, 0).event_id)
        if is_boundary:
            assert text_of(rest) == encoded[offset:].decode()
        assert rest[-1].type == "done"


async def test_resuming_at_the_end_is_answered_at_once(alice):
    conversation_id = await alice.conversation()
    events = await alice.send(conversation_id, '@twin {"text": "short"}\nGo')
    generation_id = events[0].data["generation_id"]
    assert [e.type for e in await alice.follow(generation_id, events[-2].id)] == ["done"]
    assert await alice.follow(generation_id, events[-1].id) == []
    assert text_of(await alice.follow(generation_id)) == "short"


async def test_the_whole_stream_is_there_without_redis(alice, redis_store):
    conversation_id = await alice.conversation()
    events = await alice.send(conversation_id, f"@twin {json.dumps({'text': TEXT})}\nGo")
    for name in redis_store.scan_iter(match="*:generation:*"):
        redis_store.unlink(name)
    again = await alice.follow(events[0].data["generation_id"])
    assert text_of(again) == TEXT
    assert again[-1] == events[-1]
    middle = events[len(events) // 2]
    rest = await alice.follow(events[0].data["generation_id"], middle.id)
    assert text_of(events[: len(events) // 2 + 1]) + text_of(rest) == TEXT


@pytest.mark.parametrize("after", ["x", "-1", "1.5", "99999999999999999999", "١", "1 2"])
async def test_an_id_that_is_none_is_refused_with_a_sentence(alice, after):
    conversation_id = await alice.conversation()
    events = await alice.send(conversation_id, '@twin {"text": "short"}\nGo')
    path = f"/v1/generations/{events[0].data['generation_id']}/stream"
    async with alice.session.get(alice.url + path, params={"after": after}, headers=alice.headers) as response:
        assert response.status == 422
        assert (await response.json())["error"]["param"] == "after"


async def test_a_reader_far_behind_is_served_from_the_stream(alice):
    """A reader that takes nothing for a while costs nothing and misses nothing."""
    conversation_id = await alice.conversation()
    big = {"tokens": 30, "token_ms": 5, "fault": {"kind": "huge_token", "after": 3, "bytes": 900_000}}
    async with alice.sending(conversation_id, f"@twin {json.dumps(big)}\nGo") as stream:
        start = await stream.next()
        other = await alice.follow(start.data["generation_id"])
        assert text_of(await stream.rest()) == text_of(other)


async def test_whatever_id_a_client_names_it_gets_the_rest_of_the_text_and_the_end(alice):
    text = "größer 🤗 数"
    events = await alice.send(await alice.conversation(), f"@twin {json.dumps({'text': text})}\nGo")
    generation_id, last_id = events[0].data["generation_id"], events[-1].id
    near = {event.id + step for event in events for step in (-1, 0, 1)}
    for after in sorted((near | {0, 0xFFFF, 2 * last_id, 2**53 - 1, 2**53}) - {last_id}):
        rest = await alice.follow(generation_id, after)
        assert [event.type for event in rest].count("done") == 1, after
        assert rest[-1].type == "done", after
        begun = text.encode()[: Position.from_event_id(after).offset].decode(errors="ignore")
        assert begun + text_of(rest) == text, after
    assert await alice.follow(generation_id, last_id) == []


async def test_a_stored_answer_of_a_megabyte_comes_in_parts(alice):
    wish = json.dumps({"tokens": 6, "fault": {"kind": "huge_token", "after": 2, "bytes": 1_100_000}})
    events = await alice.send(await alice.conversation(), f"@twin {wish}\nGo")
    generation_id = events[0].data["generation_id"]
    again = await alice.follow(generation_id)
    assert text_of(again) == text_of(events)
    assert max(len(event.data["text"]) for event in again if event.type == "token") <= 16_384
    middle = again[len(again) // 2]
    rest = await alice.follow(generation_id, middle.id)
    assert text_of(again[: len(again) // 2 + 1]) + text_of(rest) == text_of(events)
