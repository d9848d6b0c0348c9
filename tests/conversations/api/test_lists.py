"""Pages: their bounds, their cursors, and lists that change between two pages."""

from datetime import timedelta
from itertools import chain
from urllib.parse import quote

import pytest
from django.utils import timezone

from conversations.models import Conversation, Export, Message
from tests.accounts.factories import make_key
from tests.conversations.api.errors import error_of


def make_conversations(user, count):
    """Conversations "0" to "n", each older than the one before."""
    now = timezone.now()
    return [
        Conversation.objects.create(user=user, title=str(number), updated_at=now - timedelta(minutes=number))
        for number in range(count)
    ]


def make_messages(conversation, count):
    """One branch of alternating messages "0" to "n"."""
    parent = None
    for number in range(count):
        role = Message.Role.ASSISTANT if number % 2 else Message.Role.USER
        parent = Message.objects.create(conversation=conversation, parent=parent, role=role, content=str(number))
    Conversation.objects.filter(pk=conversation.pk).update(active_message=parent)
    return parent


def pages(dora, path, name, limit, between=lambda: None):
    """Return a list's names page by page; `between` happens after each page."""
    cursor, result = "", []
    while cursor is not None:
        separator = "&" if "?" in path else "?"
        response = dora.get(f"{path}{separator}limit={limit}&cursor={cursor}")
        assert response.status_code == 200, response.text
        page = response.json()
        assert set(page) == {"data", "next_cursor"}
        result.append([item[name] for item in page["data"]])
        cursor = page["next_cursor"]
        between()
    return result


def test_conversations_come_newest_change_first(dora):
    make_conversations(dora.user, 7)
    assert pages(dora, "/v1/conversations", "title", 3) == [["0", "1", "2"], ["3", "4", "5"], ["6"]]


def test_a_full_last_page_promises_no_other(dora):
    make_conversations(dora.user, 6)
    assert pages(dora, "/v1/conversations", "title", 3) == [["0", "1", "2"], ["3", "4", "5"]]


def test_conversations_changed_at_the_same_instant_are_each_listed_once(dora):
    made = make_conversations(dora.user, 9)
    Conversation.objects.update(updated_at=made[0].updated_at)
    listed = chain(*pages(dora, "/v1/conversations", "title", 2))
    assert sorted(listed) == [str(number) for number in range(9)]


def test_a_list_that_changes_between_pages_neither_repeats_nor_skips_what_did_not(dora):
    made = make_conversations(dora.user, 12)
    changes = [
        lambda: Conversation.objects.filter(pk=made[10].pk).update(updated_at=timezone.now()),
        made[1].delete,
        lambda: Conversation.objects.create(user=dora.user, title="new"),
        made[2].delete,  # the very item that the cursor names
    ]
    listed = chain(*pages(dora, "/v1/conversations", "title", 3, lambda: changes and changes.pop()()))
    unchanged = [str(number) for number in range(12) if number not in (1, 2, 10)]
    assert [title for title in listed if title in unchanged] == unchanged


def test_archived_conversations_are_listed_apart(dora):
    make_conversations(dora.user, 4)
    Conversation.objects.filter(title__in="13").update(archived=True)
    assert pages(dora, "/v1/conversations", "title", 9) == [["0", "2"]]
    assert pages(dora, "/v1/conversations?archived=false", "title", 9) == [["0", "2"]]
    assert pages(dora, "/v1/conversations?archived=true", "title", 1) == [["1"], ["3"]]
    assert pages(dora, "/v1/conversations?archived=True", "title", 9) == [["1", "3"]]


def test_a_list_of_conversations_costs_no_query_for_each(dora, django_assert_max_num_queries):
    for conversation in make_conversations(dora.user, 20):
        make_messages(conversation, 2)
    with django_assert_max_num_queries(5):  # once a second, one of them looks for the catalogue
        assert len(dora.get("/v1/conversations?limit=100").json()["data"]) == 20


@pytest.mark.parametrize("branch", ["active", "all"])
def test_messages_come_oldest_first(dora, branch):
    [conversation] = make_conversations(dora.user, 1)
    make_messages(conversation, 7)
    path = f"/v1/conversations/{conversation.pk}/messages?branch={branch}"
    assert pages(dora, path, "content", 3) == [["0", "1", "2"], ["3", "4", "5"], ["6"]]


def test_messages_added_while_a_branch_is_read_come_at_its_end(dora):
    [conversation] = make_conversations(dora.user, 1)
    last = make_messages(conversation, 5)

    def answer():
        nonlocal last
        if last.content != "new":
            last = Message.objects.create(conversation=conversation, parent=last, role="assistant", content="new")
            Conversation.objects.update(active_message=last)

    path = f"/v1/conversations/{conversation.pk}/messages"
    assert pages(dora, path, "content", 2, answer) == [["0", "1"], ["2", "3"], ["4", "new"]]


def test_a_message_has_the_documented_shape(dora):
    [conversation] = make_conversations(dora.user, 1)
    make_messages(conversation, 2)
    question, answer = dora.get(f"/v1/conversations/{conversation.pk}/messages").json()["data"]
    fields = {
        "message_id", "conversation_id", "parent_id", "role", "content", "status", "finish_reason", "model", "usage",
        "attachments", "citations", "tool_calls", "feedback", "created_at",
    }  # fmt: skip
    assert set(question) == set(answer) == fields
    assert (question["role"], question["parent_id"], question["usage"]) == ("user", None, None)
    assert (answer["role"], answer["parent_id"]) == ("assistant", question["message_id"])
    assert answer["usage"] == {"in": 0, "cached": 0, "out": 0}


LISTS = ["/v1/conversations", "/v1/conversations/{}/messages", "/v1/api-keys", "/v1/exports"]


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "limit", ["0", "101", "-1", "x", "", "1.0", "1e1", "٣", "²", "99999999999999999999", "0x10", "1_0", "%00"]
)
def test_a_limit_out_of_bounds_is_refused(dora, path, limit):
    error = error_of(dora.get(f"{path.format(dora.conversation())}?limit={limit}"), 422, "invalid_request")
    assert error["param"] == "limit"
    assert list(error["details"]) == ["limit"]


@pytest.mark.parametrize("path", LISTS)
def test_a_page_holds_one_to_a_hundred_and_thirty_if_not_said(settings, dora, path):
    settings.MOST_API_KEYS = 102
    make_conversations(dora.user, 101)
    conversation_id = dora.conversation()
    make_messages(Conversation.objects.get(pk=conversation_id), 102)
    for _ in range(101):
        make_key(dora.user)
    Export.objects.bulk_create(Export(user=dora.user, status="done") for _ in range(101))
    path = path.format(conversation_id)
    for query, count in (("", 30), ("?limit=1", 1), ("?limit=100", 100)):
        page = dora.get(path + query).json()
        assert len(page["data"]) == count
        assert page["next_cursor"]


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "AAAA",
        "W10",
        "bnVsbA",
        "Nw",
        "eyJhIjoxfQ",
        "\x00",
        "é",
        "'",
        "x" * 3000,
        "WyJ4IixudWxsXQ",
        "e30=",
        "=",
        "==",
    ],
)
def test_a_cursor_that_no_list_gave_out_is_refused(dora, path, cursor):
    path = f"{path.format(dora.conversation())}?cursor={quote(cursor)}"
    assert error_of(dora.get(path), 422, "invalid_request")["param"] == "cursor"


def test_a_cursor_of_one_list_is_none_of_another(dora):
    made = make_conversations(dora.user, 2)
    make_messages(made[0], 4)
    messages = f"/v1/conversations/{made[0].pk}/messages"
    of_messages = dora.get(f"{messages}?limit=1").json()["next_cursor"]
    of_conversations = dora.get("/v1/conversations?limit=1").json()["next_cursor"]
    error_of(dora.get(f"/v1/conversations?cursor={of_messages}"), 422, "invalid_request")
    error_of(dora.get(f"{messages}?cursor={of_conversations}"), 422, "invalid_request")


@pytest.mark.parametrize("branch", ["", "none", "ALL%00", "active,all"])
def test_an_unknown_branch_is_refused(dora, branch):
    path = f"/v1/conversations/{dora.conversation()}/messages?branch={branch}"
    assert error_of(dora.get(path), 422, "invalid_request")["param"] == "branch"
