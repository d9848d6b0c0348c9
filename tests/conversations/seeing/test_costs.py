"""How full a conversation's window is and what it costs, at `/v1/conversations/{conversation_id}/context`."""

import pytest

from accounts.models import UsageRecord
from conversations.costs import gauges_of
from conversations.models import Conversation, Generation, Message
from conversations.services import forking
from tests.accounts import settling
from tests.accounts.factories import bearer, make_key
from tests.conversations.seeing.conftest import make_exchanges

pytestmark = pytest.mark.django_db


def pay(message, tokens_in, cached, out):
    """End an answer as the worker does: with its counts, and in the ledger."""
    Message.objects.filter(pk=message.pk).update(tokens_in=tokens_in, tokens_cached=cached, tokens_out=out)
    conversation = message.conversation
    settling.settle(
        generation_id=message.id, user_id=conversation.user_id, conversation_id=conversation.id, model="small",
        tokens_in=tokens_in, tokens_cached=cached, tokens_out=out,
    )  # fmt: skip


@pytest.fixture
def paid(alice):
    """Three exchanges."""
    conversation, rows = make_exchanges(alice, 3)
    for place, tokens in ((1, (20, 0, 5)), (3, (45, 25, 10)), (5, (80, 55, 30))):
        pay(rows[place], *tokens)
    return conversation


@pytest.fixture
def cost_of(client, alice):
    key = bearer(make_key(alice, ["read"]))
    return lambda conversation, **query: client.get(
        f"/v1/conversations/{conversation.id}/context", query, headers=key
    ).json()


def test_the_gauge_is_the_last_prompt_and_answer(cost_of, client, alice, paid):
    cost = cost_of(paid)
    assert (cost["used"], cost["summarised"], cost["conversation_id"]) == (110, False, str(paid.id))
    shown = client.get(f"/v1/conversations/{paid.id}", headers=bearer(make_key(alice))).json()["context"]
    assert shown == {name: cost[name] for name in ("used", "limit", "summarised")}


def test_an_answer_under_way_is_measured_by_its_prompt_and_before_that_by_the_answer_above(cost_of, paid, alice):
    question = paid.messages.create(parent=paid.active_message, role="user", content="And?")
    answer = paid.messages.create(parent=question, role="assistant", status="queued")
    Conversation.objects.filter(pk=paid.pk).update(active_message=answer)
    assert cost_of(paid)["used"] == 110
    Generation.objects.create(
        message=answer, conversation=paid, user=alice, status="running", deadline=answer.created_at,
        context={"total_tokens": 130, "summary": None},
    )  # fmt: skip
    assert cost_of(paid)["used"] == 130


def test_a_summary_in_the_last_prompt_is_told(cost_of, trimmed):
    cost = cost_of(trimmed[0].conversation)
    assert (cost["used"], cost["summarised"]) == (120, True)
    Conversation.objects.update(active_message=trimmed[3])
    assert (cost_of(trimmed[0].conversation)["summarised"]) is False


def test_what_was_used_adds_up_turn_by_turn(cost_of, paid):
    cost = cost_of(paid)
    assert cost["total"] == {"in": 145, "cached": 80, "out": 45}
    assert [turn["usage"] for turn in cost["turns"]["data"]] == [
        {"in": 20, "cached": 0, "out": 5}, {"in": 45, "cached": 25, "out": 10}, {"in": 80, "cached": 55, "out": 30}
    ]  # fmt: skip
    assert [turn["accumulated"]["in"] for turn in cost["turns"]["data"]] == [20, 65, 145]
    assert cost["turns"]["data"][-1]["accumulated"] == cost["total"]


def test_turns_come_in_pages_that_go_on_adding(cost_of, paid):
    first = cost_of(paid, limit=2)["turns"]
    second = cost_of(paid, limit=2, cursor=first["next_cursor"])["turns"]
    assert [turn["accumulated"]["in"] for turn in (*first["data"], *second["data"])] == [20, 65, 145]
    assert second["next_cursor"] is None


def test_the_next_turn_reads_what_is_there_and_an_average_question(cost_of, paid):
    assert cost_of(paid)["next_turn"] == {"in": 120, "cached": 110, "out": 15}
    Message.objects.filter(role="user").update(token_counts={}, content="x" * 80)
    assert cost_of(paid)["next_turn"]["in"] == 130, "a question that nobody has counted has a token for four bytes"


def test_an_empty_conversation_costs_nothing(cost_of, alice):
    cost = cost_of(Conversation.objects.create(user=alice))
    nothing = {"in": 0, "cached": 0, "out": 0}
    assert (cost["used"], cost["total"], cost["next_turn"]) == (0, nothing, nothing)
    assert cost["turns"] == {"data": [], "next_cursor": None}


def test_what_is_copied_has_cost_nothing_yet_fills_the_window(cost_of, alice, paid):
    copy = forking.fork(user=alice, conversation_id=paid.id)
    cost = cost_of(copy)
    assert (cost["used"], cost["total"]["in"], cost["turns"]["data"]) == (110, 0, [])
    assert UsageRecord.objects.count() == 3


def test_gauges_of_many_conversations_are_one_query(alice, django_assert_num_queries):
    made = [make_exchanges(alice, 2)[0] for _ in range(5)]
    with django_assert_num_queries(1):
        assert len(gauges_of(each.id for each in made)) == 5


def test_the_cost_takes_as_many_queries_whatever_the_length(client, alice, paid, django_assert_max_num_queries):
    long, rows = make_exchanges(alice, 60)
    for row in rows[1::2]:
        pay(row, 10, 5, 1)
    key = bearer(make_key(alice, ["read"]))
    for conversation in (paid, long):
        with django_assert_max_num_queries(10):
            assert client.get(f"/v1/conversations/{conversation.id}/context", headers=key).status_code == 200
