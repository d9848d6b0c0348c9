"""What is reserved is never less than what is used, so that no settlement goes beyond a limit."""

import json

import pytest
from asgiref.sync import sync_to_async
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.models import Generation
from inference.fleet_reports import last_reports
from inference.testing.settings import TwinSettings
from tests.accounts.factories import make_key, make_user
from tests.api_client import ApiClient
from tests.conversations.ledger.books import assert_books_balance
from tests.inference.core.waiting import until
from tests.running_site import running_site

WINDOW = 2000
FAULT = {"kind": "error", "after": 3, "always": True, "error_type": "validation"}
ODD_TEXT = [
    "Plain words.",
    "日本語で書かれた文",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 3,
    "e\u0301\u0327" * 5,
    "\u0958\u0344\ufb2c" * 4,
    "x" * 400,
]
STEPS = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(ODD_TEXT), st.sampled_from([1, 20, 90])),
    st.tuples(st.just("edit"), st.sampled_from(ODD_TEXT), st.sampled_from([1, 20])),
    st.tuples(st.just("again"), st.none(), st.none()),
    st.tuples(st.just("go on"), st.none(), st.none()),
    st.tuples(st.just("remember"), st.sampled_from(ODD_TEXT), st.none()),
    st.tuples(st.just("instruct"), st.sampled_from(ODD_TEXT), st.none()),
    st.tuples(st.just("fail"), st.none(), st.none()),
)


@pytest.fixture(scope="module")
def narrow_site(no_other_worker, tmp_path_factory):
    """A site whose model reads and writes 2,000 tokens at most."""
    twin = TwinSettings(token_ms=0, prefill_ms=0, max_input_tokens=WINDOW - 1, max_total_tokens=WINDOW)
    log = tmp_path_factory.mktemp("ledger") / "log"
    with running_site(twin_settings=twin, log=log, MAX_ANSWER_TOKENS="100") as site:
        yield site


@pytest.fixture
def site(narrow_site, transactional_db):
    narrow_site.twin.reset()
    return narrow_site


async def is_known(client):
    """Wait until the web process knows the model's window, and not only from before this test."""

    async def is_told():
        reports = await sync_to_async(last_reports)()
        return any(report.max_total_tokens == WINDOW for report in reports.values())

    async def is_read():
        _, models = await client.call("GET", "/v1/models")
        return models["data"][0]["context_size"] == WINDOW

    await until(is_told, seconds=60)
    await until(is_read, seconds=20)


def question(text, tokens=20, **directive):
    return f"@twin {json.dumps({'tokens': tokens, **directive})}\n{text}"


class Talk:
    """One conversation, to which things are done through the API."""

    def __init__(self, client):
        self.client = client
        self.conversation_id = None
        self.last = None

    async def do(self, step, text, tokens):
        if self.conversation_id is None:
            self.conversation_id = await self.client.conversation()
        match step:
            case "send":
                await self._send(question(text, tokens))
            case "edit":
                await self._send(question(text, tokens), parent_id=None)
            case "fail":
                await self._send(question("No.", fault=FAULT))
            case "again" if self.last:
                await self.client.call("POST", f"/v1/messages/{self.last}/regenerate", {"stream": False})
            case "go on" if self.last:
                await self._send(question("Long.", 300))
                await self.client.call("POST", f"/v1/messages/{self.last}/continue", {"stream": False})
            case "remember":
                await self._send(f"Remember that {text}")
            case "instruct":
                await self.client.call("PATCH", "/v1/preferences", {"instructions": text * 3})
                await self.client.call("PATCH", f"/v1/conversations/{self.conversation_id}", {"instructions": text * 2})

    async def _send(self, content, **fields):
        events = await self.client.send(self.conversation_id, content, **fields)
        assert events, content
        self.last = events[0].data["message_id"]


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=5, max_size=9))
async def test_no_answer_ever_uses_more_than_was_reserved(http, site, reservations, steps):
    secret = await sync_to_async(lambda: make_key(make_user(tier="enterprise")))()
    talk = Talk(ApiClient(http, site.url, secret))
    await is_known(talk.client)
    for step in steps:
        await talk.do(*step)
    await sync_to_async(assert_books_balance)()
    both = await sync_to_async(reservations)()
    assert [pair for pair in both if pair[0] > pair[1]] == []
    assert not await Generation.objects.under_way().aexists()


async def test_a_conversation_that_outgrows_the_window_is_reserved_the_window_and_no_more(alice, site, reservations):
    await is_known(alice)
    conversation_id = await alice.conversation()
    for turn in range(40):
        await alice.send(conversation_id, question(f"This is the question number {turn}", 60))
    both = await sync_to_async(reservations)()
    assert len(both) == 40
    assert [pair for pair in both if not pair[0] <= pair[1] <= WINDOW] == []


async def test_what_was_counted_is_not_guessed_again(alice, site, reservations):
    await is_known(alice)
    conversation_id = await alice.conversation()
    for turn in range(6):
        events = await alice.send(conversation_id, question(f"Question {turn}: {'some words ' * 10}", 60))
        await until(Generation.objects.filter(pk=events[0].data["generation_id"], context__is_exact=True).aexists)
    both = await sync_to_async(reservations)()
    for used, reserved in both[1:]:
        assert reserved - used < 1000, both
