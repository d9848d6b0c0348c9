"""The client and the fault-injecting twin: every fault is told apart, and none changes a byte of what is shown."""

import asyncio
import json
from contextlib import aclosing, asynccontextmanager

import pytest

from inference.events import Piece
from inference.openai_compatible import OpenAICompatibleClient
from inference.testing.answers import expected_answer
from inference.testing.running import running_twin
from inference.testing.settings import TwinSettings
from inference.tgi import errors
from inference.tgi.client import TGIClient, Timeouts
from tests.inference.tgi.asking import ask, finish_of, request, text_of

FAST = {"token_ms": 1.0, "prefill_ms": 1.0}
SHORT = Timeouts(read_seconds=0.5, first_token_seconds=0.5, token_seconds=0.5)


@asynccontextmanager
async def twin_client(session, *, timeouts=None, **settings):
    async with running_twin(TwinSettings(**{**FAST, **settings})) as twin:
        yield twin, client_of(twin, session, **({"timeouts": timeouts} if timeouts else {}))


def client_of(twin, session, **options):
    kind = OpenAICompatibleClient if twin.settings.dialect == "openai" else TGIClient
    return kind(twin.url, session=session, **options)


def prompt(fault: dict | None = None, **wishes) -> str:
    return "@twin " + json.dumps(wishes | ({"fault": fault} if fault else {})) + "\nTell me more."


@pytest.mark.parametrize("version", ["1.4.5", "2.0.4", "2.2.0", "2.3.1", "2.4.1", "3.0.1", "3.3.7"])
async def test_an_answer_of_any_version_is_read_whole(session, version):
    async with twin_client(session, tgi_version=version) as (_, client):
        events = await ask(client, request("Hello"))
    assert text_of(events) == expected_answer("Hello", answer_tokens=64)
    assert finish_of(events).reason == "stop"
    assert finish_of(events).tokens_out == 65


async def test_an_answer_in_openais_dialect_is_read_whole(session):
    async with twin_client(session, dialect="openai") as (_, client):
        events = await ask(client, request("Hello"))
    assert text_of(events) == expected_answer("Hello", answer_tokens=64)
    assert finish_of(events).tokens_in > 0


HARMLESS = [
    {"kind": "split", "bytes": 1},
    {"kind": "split", "bytes": 7},
    {"kind": "coalesce"},
    {"kind": "line_ending", "ending": "crlf"},
    {"kind": "line_ending", "ending": "cr"},
    {"kind": "no_space"},
    {"kind": "byte_order_mark"},
    {"kind": "extra_frame"},
    {"kind": "padded_frame", "bytes": 1_048_576, "after": 5},
    {"kind": "finish_reason", "reason": "something_new"},
    {"kind": "delay_headers", "ms": 50},
    {"kind": "delay_first_token", "ms": 50},
]


@pytest.mark.parametrize("fault", HARMLESS, ids=str)
async def test_a_fault_of_form_changes_no_byte_of_an_answer(session, fault):
    asked = prompt(fault, tokens=24)
    async with twin_client(session) as (twin, client):
        events = await ask(client, request(asked))
        assert twin.records[-1].faults == (fault["kind"],)
    assert text_of(events) == expected_answer(asked)


@pytest.mark.parametrize(("kind", "shown"), [("lone_surrogate", "\ufffd"), ("nul", "\ufffd")])
async def test_a_character_that_cannot_be_stored_is_replaced(session, kind, shown):
    async with twin_client(session) as (_, client):
        events = await ask(client, request(prompt({"kind": kind, "after": 3}, tokens=8)))
    assert shown in text_of(events)
    text_of(events).encode()
    assert "\0" not in text_of(events)


REFUSALS = [
    ({"kind": "disconnect"}, errors.Unreachable),
    ({"kind": "stall_headers"}, errors.Stalled),
    ({"kind": "status", "status": 500, "body": "oops"}, errors.Misbehaved),
    ({"kind": "plain_422"}, errors.InvalidRequest),
    ({"kind": "html_502"}, errors.Misbehaved),
    ({"kind": "empty_401"}, errors.Unauthorized),
    ({"kind": "overloaded_429"}, errors.Overloaded),
    ({"kind": "wrong_content_type"}, errors.Misbehaved),
]
BREAKS = [
    ({"kind": "error", "error_type": "overloaded"}, errors.Overloaded),
    ({"kind": "error", "error_type": "generation"}, errors.GenerationFailed),
    ({"kind": "error", "error_type": "incomplete_generation_stream"}, errors.Incomplete),
    ({"kind": "error", "error_type": "validation"}, errors.InvalidRequest),
    ({"kind": "stall"}, errors.Stalled),
    ({"kind": "stall", "keep_alive": False}, errors.Stalled),
    ({"kind": "keep_alives_only"}, errors.Stalled),
    ({"kind": "cut", "how": "rst"}, errors.Incomplete),
    ({"kind": "cut", "how": "fin"}, errors.Incomplete),
    ({"kind": "cut_mid_character"}, errors.Incomplete),
    ({"kind": "clean_end"}, errors.Incomplete),
    ({"kind": "garbage"}, errors.Misbehaved),
    ({"kind": "invalid_utf8"}, errors.Misbehaved),
]


async def interrupted(client, chat_request):
    """The error that ends an answer, and the text before it."""
    pieces = []

    async def collect():
        async with aclosing(client.stream_chat(chat_request)) as events:
            async for event in events:
                pieces.append(event)

    with pytest.raises(errors.ModelServerError) as raised:
        await collect()
    return raised.value, text_of(pieces)


@pytest.mark.parametrize(("fault", "kind"), REFUSALS, ids=str)
async def test_a_refusal_is_told_apart_and_the_next_request_is_answered(session, fault, kind):
    asked = prompt(fault, tokens=8)
    async with twin_client(session, timeouts=SHORT) as (_, client):
        error, text = await interrupted(client, request(asked))
        assert (type(error), text) == (kind, "")
        assert text_of(await ask(client, request(asked))) == expected_answer(asked)


@pytest.mark.parametrize("after", [0, 10])
@pytest.mark.parametrize(("fault", "kind"), BREAKS, ids=str)
async def test_an_answer_that_breaks_can_be_continued_to_the_same_bytes(session, fault, kind, after):
    asked = prompt(fault | {"after": after}, tokens=24)
    async with twin_client(session, timeouts=SHORT, keep_alive_ms=100.0) as (twin, hasty):
        error, partial = await interrupted(hasty, request(asked))
        assert type(error) is kind
        rest = await ask(client_of(twin, session), request(asked, partial=partial or None))
    assert partial + text_of(rest) == expected_answer(asked)


async def test_an_answer_can_be_continued_from_any_piece(session):
    asked = prompt(pieces=["One", "\n", "\n", "two ", " ", " three", "\n", "    four", " 🍸", "\n\n", "end"])
    whole = expected_answer(asked)
    async with twin_client(session) as (_, client):
        for count in range(1, len(whole)):
            rest = await ask(client, request(asked, partial=whole[:count]))
            assert whole[:count] + text_of(rest) == whole, count


async def test_a_stop_string_is_cut_off_wherever_tokens_split_it(session):
    asked = prompt(pieces=["One ", "tw", "o", " STO", "P", "\n three"])
    async with twin_client(session) as (_, client):
        events = await ask(client, request(asked, stop=("STOP",)))
    assert text_of(events) == "One two "
    assert finish_of(events).reason == "stop"


async def test_the_token_limit_is_the_finish_reason(session):
    async with twin_client(session) as (_, client):
        events = await ask(client, request("Hello", max_new_tokens=10))
    assert text_of(events) == expected_answer("Hello", max_new_tokens=10)
    assert (finish_of(events).reason, finish_of(events).tokens_out) == ("length", 10)


@pytest.mark.parametrize("dialect", ["tgi", "openai"])
async def test_the_server_sees_that_a_closed_answer_was_closed_by_the_client(session, dialect):
    async with twin_client(session, dialect=dialect) as (twin, client):
        async with aclosing(client.stream_chat(request(prompt(tokens=5000)))) as events:
            assert isinstance(await anext(events), Piece)
        await twin.wait_for(lambda ledger: ledger.records[-1].closed_by == "client")


async def test_an_answer_cancelled_while_it_waits_for_a_slot_leaves_the_queue(session):
    async with (
        twin_client(session, batch_size=1) as (twin, client),
        aclosing(client.stream_chat(request(prompt(tokens=5000)))) as running,
    ):
        await anext(running)
        waiting = asyncio.create_task(ask(client, request(prompt(tokens=5))))
        await twin.wait_for(lambda ledger: len(ledger.records) == 2)
        waiting.cancel()
        await twin.wait_for(lambda ledger: ledger.records[-1].closed_by == "client")
        assert twin.open_count == 1


async def test_facts_and_token_counts_are_read(session):
    async with twin_client(session, model_id="M", max_input_tokens=99, max_total_tokens=100, permits=7) as (_, client):
        told = await client.info()
        assert (told.model_id, told.max_input_tokens, told.max_total_tokens) == ("M", 99, 100)
        assert told.max_concurrent_requests == 7
        assert await client.is_healthy()
        assert await client.count_tokens(request("Hello there").messages) > 0
