"""Temporary conversations: in no list, without memories, gone after their time."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta

import pytest
from django.db import connections, transaction
from django.db.models import F
from django.utils import timezone

from conversations.models import Conversation, Message
from conversations.services import conversations, temporary
from conversations.services.messages import NewMessage, send
from tests.accounts.factories import bearer, make_key, make_user, signed_in_as

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return make_user("alice@example.com")


@pytest.fixture
def browser(alice):
    return signed_in_as(alice)


def aged(conversation, **ago):
    """Let the last message be so long ago."""
    Conversation.objects.filter(pk=conversation.pk).update(updated_at=F("updated_at") - timedelta(**ago))


def end_of_answer(sent):
    sent.generation.status = sent.answer.status = Message.Status.COMPLETE
    sent.generation.save()
    sent.answer.save()


def test_a_program_makes_a_temporary_conversation_and_is_told_when_it_ends(alice, client, settings):
    settings.TEMPORARY_KEEP_HOURS = 48
    headers = bearer(make_key(alice))
    made = client.post("/v1/conversations", {"temporary": True}, "application/json", headers=headers).json()
    lifetime = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["updated_at"])
    assert (made["temporary"], lifetime) == (True, timedelta(hours=48))
    assert client.get("/v1/conversations", headers=headers).json()["data"] == []
    assert client.get("/v1/conversations?archived=true", headers=headers).json()["data"] == []
    assert client.get(f"/v1/conversations/{made['conversation_id']}", headers=headers).status_code == 200


def test_other_conversations_never_end(alice, client):
    headers = bearer(make_key(alice))
    made = client.post("/v1/conversations", {}, "application/json", headers=headers).json()
    assert (made["temporary"], made["expires_at"]) == (False, None)


def test_a_conversation_cannot_become_temporary_later(alice, client):
    conversation = conversations.create(user=alice)
    headers = bearer(make_key(alice))
    path = f"/v1/conversations/{conversation.id}"
    answer = client.patch(path, {"temporary": True}, "application/json", headers=headers)
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, "temporary")


def test_a_temporary_conversation_is_deleted_after_its_time_and_no_other(alice):
    gone, young = (conversations.create(user=alice, temporary=True) for _ in range(2))
    kept = conversations.create(user=alice)
    aged(gone, hours=24)
    aged(young, hours=23)
    aged(kept, days=1000)
    assert temporary.delete_outlived() == 1
    assert set(Conversation.objects.all()) == {young, kept}
    assert temporary.delete_outlived() == 0


def test_an_answer_under_way_is_left_alone_until_it_ends(alice):
    sent = send(user=alice, conversation_id=None, message=NewMessage("Hello", is_temporary=True))
    aged(sent.conversation, hours=30)
    assert temporary.delete_outlived() == 0
    end_of_answer(sent)
    assert temporary.delete_outlived() == 1
    assert not Message.objects.exists()


def test_what_is_said_in_it_gives_it_more_time(alice):
    sent = send(user=alice, conversation_id=None, message=NewMessage("Hello", is_temporary=True))
    end_of_answer(sent)
    aged(sent.conversation, hours=30)
    end_of_answer(send(user=alice, conversation_id=sent.conversation.id, message=NewMessage("Still there?")))
    assert temporary.delete_outlived() == 0


def test_to_rename_it_gives_it_no_more_time(alice):
    conversation = conversations.create(user=alice, temporary=True)
    aged(conversation, hours=24)
    conversations.change(user=alice, conversation_id=conversation.id, changes={"title": "Still here"})
    assert temporary.delete_outlived() == 1


def test_without_scripts_a_temporary_chat_is_begun_and_says_when_it_is_deleted(alice, browser):
    assert 'href="/?temporary=1"' in browser.get("/").text
    page = browser.get("/?temporary=1").text
    assert '<input type="hidden" name="temporary" value="1">' in page
    assert "24 hours after its last message" in page
    assert page.count('href="?prompt=') == page.count('&amp;temporary=1">') == 3, "an idea does not end it"
    browser.post("/c/new/messages", {"content": "Hush", "temporary": "1"})
    conversation = Conversation.objects.get(user=alice)
    assert conversation.temporary
    page = browser.get(f"/c/{conversation.id}").text
    assert conversation.expires_at.isoformat() in page.replace("&#x2B;", "+")
    assert "conversation-row__link" not in page


def test_an_ordinary_chat_says_nothing_of_it(alice, browser):
    browser.post("/c/new/messages", {"content": "Hello"})
    conversation = Conversation.objects.get(user=alice)
    assert not conversation.temporary
    assert "temporary-banner" not in browser.get(f"/c/{conversation.id}").text


def test_no_sidebar_gets_its_row_not_even_by_a_live_change(alice, browser):
    fragment = {"X-Fragment": "1"}
    sent = browser.post("/c/new/messages", {"content": "Hush", "temporary": "1"}, headers=fragment)
    conversation = Conversation.objects.get(user=alice)
    assert "conversation-row" not in sent.text
    assert "temporary-banner" in sent.text
    row = browser.get(f"/c/{conversation.id}/row", headers=fragment)
    assert (row.status_code, row.text) == (204, "")


def test_its_time_is_set_by_the_site(alice, settings):
    settings.TEMPORARY_KEEP_HOURS = 1
    conversation = conversations.create(user=alice, temporary=True)
    assert conversation.expires_at - conversation.updated_at == timedelta(hours=1)
    assert conversation.expires_at > timezone.now()


@pytest.mark.django_db(transaction=True)
def test_one_that_somebody_is_writing_to_just_now_is_passed_by():
    conversation = conversations.create(user=make_user(), temporary=True)
    aged(conversation, hours=30)

    def sweep():
        with closing(connections["default"]):
            return temporary.delete_outlived()

    with ThreadPoolExecutor(1) as thread, transaction.atomic():
        Conversation.objects.select_for_update().get(pk=conversation.pk)
        assert thread.submit(sweep).result(20) == 0
    assert temporary.delete_outlived() == 1
