"""Continuing on the page: one answer with one button, also without scripts."""

import re

import pytest
from django.test import Client

from conversations.models import Conversation, Message
from inference.positions import Position
from tests.accounts.factories import make_user, signed_in_as

pytestmark = pytest.mark.django_db
FRAGMENT = {"X-Fragment": "1"}


@pytest.fixture
def alice():
    return make_user("alice@example.com")


@pytest.fixture
def browser(alice):
    return signed_in_as(alice)


@pytest.fixture
def partial(alice):
    """An answer that reached its longest length within a block of code."""
    conversation = Conversation.objects.create(user=alice, title="Talk")
    question = Message.objects.create(conversation=conversation, role="user", content="Write code")
    answer = Message.objects.create(
        conversation=conversation, parent=question, role="assistant", content="Here:\n\n```python\na = 1\n",
        finish_reason="length", model="small",
    )  # fmt: skip
    Conversation.objects.filter(pk=conversation.pk).update(active_message=answer)
    return answer


def rows_of(page):
    return re.findall(r'<li class="message message--(\w+)"\s+id="m-([^"]+)"\s+data-message-id="[^"]+"\s+'
                      r'data-parent-id="([^"]*)"', page)  # fmt: skip


def test_the_button_works_without_scripts(browser, partial):
    path = f"/m/{partial.id}/continue"
    assert f'action="{path}"' in browser.get(f"/c/{partial.conversation_id}").text
    answer = browser.post(path)
    assert (answer.status_code, answer["Location"]) == (302, f"/c/{partial.conversation_id}")
    continuation = Message.objects.get(parent=partial)
    assert (continuation.role, continuation.status) == ("assistant", "queued")
    assert continuation.generation.is_background, "nobody watches a page without scripts"


def test_the_script_gets_the_answer_in_one_row_that_takes_the_partials_place(browser, partial):
    answer = browser.post(f"/m/{partial.id}/continue", headers=FRAGMENT)
    continuation = Message.objects.get(parent=partial)
    question_id = str(partial.parent_id)
    assert rows_of(answer.text) == [("user", question_id, ""), ("answer", str(continuation.id), question_id)]
    assert f'data-event-id="{Position.of_text("").event_id}"' in answer.text, "events count from the part's own text"


def test_an_answer_and_its_continuation_are_shown_as_one(browser, partial):
    continuation = Message.objects.create(
        conversation=partial.conversation, parent=partial, role="assistant", content="b = 2\n```\n\nDone.",
        finish_reason="stop", model="small",
    )  # fmt: skip
    Conversation.objects.filter(pk=partial.conversation_id).update(active_message=continuation)
    page = browser.get(f"/c/{partial.conversation_id}").text
    question_id = str(partial.parent_id)
    assert rows_of(page) == [("user", question_id, ""), ("answer", str(continuation.id), question_id)]
    assert page.count("<code-block") == 1, "code that was cut in two is one block again"
    assert "a = 1\\nb = 2\\n" in page, "what is copied is the whole answer"


def test_a_refusal_is_a_sentence(browser, partial):
    Message.objects.filter(pk=partial.pk).update(finish_reason="stop")
    answer = browser.post(f"/m/{partial.id}/continue", headers=FRAGMENT)
    assert answer.status_code == 422
    assert "can be continued" in answer.text


def test_a_stranger_finds_nothing(partial):
    stranger = Client()
    stranger.force_login(make_user("mallory@example.com"))
    assert stranger.post(f"/m/{partial.id}/continue", headers=FRAGMENT).status_code == 404
    assert not Message.objects.filter(parent=partial).exists()
