"""The chat's pages and forms, as a browser without scripts and the page's own script call them."""

import json
import re
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from accounts.models import Tier
from conversations.models import Conversation, Message
from conversations.services.admission import NOTICES
from foundation.ids import new_id
from inference.positions import Position
from tests.accounts.factories import make_user, signed_in_as

pytestmark = pytest.mark.django_db
STATIC = settings.BASE_DIR / "static"
FRAGMENT = {"X-Fragment": "1"}


@pytest.fixture
def alice():
    return make_user("alice@example.com")


@pytest.fixture
def browser(alice):
    return signed_in_as(alice)


def make_answer(user, *, status=Message.Status.COMPLETE, content="An *answer*.", title="Talk") -> Message:
    """Make a conversation of one question and its answer."""
    conversation = Conversation.objects.create(user=user, title=title)
    question = Message.objects.create(conversation=conversation, role="user", content="A <b>question</b>")
    answer = Message.objects.create(
        conversation=conversation, parent=question, role="assistant", content=content, status=status, model="small"
    )
    Conversation.objects.filter(pk=conversation.pk).update(active_message=answer)
    answer.conversation.refresh_from_db()
    return answer


def test_a_visitor_is_sent_to_sign_in_and_comes_back_to_where_they_were_going():
    answer = Client().get(f"/c/{uuid4()}")
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/?next=/c/")


def test_a_script_whose_person_was_signed_out_is_told_so():
    answer = Client().post("/c/new/messages", {"content": "Hello"}, headers=FRAGMENT)
    assert answer.status_code == 401
    assert 'data-code="not_authenticated"' in answer.text


def test_an_empty_conversation_invites_and_lists_the_models(browser):
    page = browser.get("/").text
    assert "What can I help with?" in page
    assert '<option value="small"' in page


@pytest.mark.parametrize("name", ["memories_page", "usage_page", "security", "docs"])
def test_the_menu_leads_to_the_account(browser, name):
    assert f'href="{reverse(name)}"' in browser.get("/").text


@pytest.mark.parametrize("name", ["usage_page", "billing_page", "api_keys_page", "security", "account_email"])
def test_a_page_of_the_account_leads_to_the_others(browser, name):
    assert f'href="{reverse(name)}"' in browser.get(reverse("memories_page")).text


def test_a_conversation_shows_its_branch_with_markdown_rendered_and_the_question_as_text(alice, browser):
    answer = make_answer(alice)
    page = browser.get(f"/c/{answer.conversation_id}").text
    assert "<em>answer</em>" in page
    assert "A &lt;b&gt;question&lt;/b&gt;" in page


def test_an_answer_under_way_tells_the_script_how_far_its_text_goes(alice, browser):
    answer = make_answer(alice, status=Message.Status.RUNNING, content="Grüße")
    page = browser.get(f"/c/{answer.conversation_id}").text
    assert f'data-event-id="{Position.of_text("Grüße").event_id}"' in page
    assert '<meta http-equiv="refresh"' in page


@pytest.mark.parametrize(("content", "count"), [("", 0), ("So far", 1)])
def test_an_answer_under_way_shows_the_notices_that_came_before_its_text(alice, browser, content, count):
    browser.post("/c/new/messages", {"content": "Remember that I am vegan."}, headers=FRAGMENT)
    answer = Message.objects.get(role="assistant")
    Message.objects.filter(pk=answer.pk).update(content=content)
    assert browser.get(f"/c/{answer.conversation_id}").text.count(NOTICES["memory_saved"]) == count


def test_a_finished_conversation_does_not_reload_itself(alice, browser):
    page = browser.get(f"/c/{make_answer(alice).conversation_id}").text
    assert "http-equiv" not in page


def test_a_first_message_makes_a_conversation_and_leads_to_it(alice, browser):
    answer = browser.post("/c/new/messages", {"content": "Hello\r\nthere", "idempotency_key": "k1"})
    conversation = Conversation.objects.get(user=alice)
    assert answer.status_code == 302
    assert answer["Location"] == f"/c/{conversation.id}"
    assert conversation.messages.get(role="user").content == "Hello\nthere"


def test_without_scripts_the_answer_is_not_taken_for_abandoned(alice, browser):
    browser.post("/c/new/messages", {"content": "Hello"})
    assert Conversation.objects.get(user=alice).generations.get().is_background


def test_the_script_gets_the_new_rows_and_where_they_belong(alice, browser):
    answer = browser.post("/c/new/messages", {"content": "Hello"}, headers=FRAGMENT)
    conversation = Conversation.objects.get(user=alice)
    assert answer.status_code == 200
    assert f'data-url="/c/{conversation.id}"' in answer.text
    assert f'data-send-url="/c/{conversation.id}/messages"' in answer.text
    assert len(re.findall(r"<li class=\"message ", answer.text)) == 2
    assert "conversation-row" in answer.text
    assert not conversation.generations.get().is_background


def test_the_same_key_sent_twice_makes_one_message(alice, browser):
    for _ in range(2):
        browser.post("/c/new/messages", {"content": "Hello", "idempotency_key": "once"}, headers=FRAGMENT)
    assert Message.objects.filter(conversation__user=alice, role="user").count() == 1


@pytest.mark.parametrize("content", ["", "   \r\n "])
def test_an_empty_message_is_refused_with_a_sentence(browser, content):
    answer = browser.post("/c/new/messages", {"content": content}, headers=FRAGMENT)
    assert answer.status_code == 422
    assert "Write a message first." in answer.text


def test_a_refused_text_comes_back_with_the_sentence(browser, settings):
    settings.MAX_MESSAGE_CHARACTERS = 10
    answer = browser.post("/c/new/messages", {"content": "x" * 11})
    assert answer.status_code == 413
    assert f"{'x' * 11}</textarea>" in answer.text
    assert "10 are allowed" in answer.text


def test_a_message_with_a_nul_is_refused(alice, browser):
    answer = browser.post("/c/new/messages", {"content": "a\x00b"}, headers=FRAGMENT)
    assert answer.status_code == 422
    assert not Conversation.objects.filter(user=alice).exists()


def test_a_reached_limit_is_a_sentence_with_the_time_to_come_back():
    Tier.objects.create(name="tiny", requests_per_window=1)
    browser = signed_in_as(make_user(tier="tiny"))
    browser.post("/c/new/messages", {"content": "One"}, headers=FRAGMENT)
    answer = browser.post("/c/new/messages", {"content": "Two"}, headers=FRAGMENT)
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) > 0
    assert 'data-code="requests_exceeded"' in answer.text


def test_another_answer_is_written_beside_the_first(alice, browser):
    first = make_answer(alice)
    answer = browser.post(f"/m/{first.id}/regenerate", headers=FRAGMENT)
    assert answer.status_code == 200
    assert Message.objects.filter(parent=first.parent, role="assistant").count() == 2


def test_a_conversation_is_renamed(alice, browser):
    conversation = make_answer(alice).conversation
    answer = browser.post(f"/c/{conversation.id}/rename", {"title": "<New>"}, headers=FRAGMENT)
    assert "&lt;New&gt;" in answer.text
    conversation.refresh_from_db()
    assert conversation.title == "<New>"


def test_an_empty_title_is_refused(alice, browser):
    conversation = make_answer(alice).conversation
    answer = browser.post(f"/c/{conversation.id}/rename", {"title": " "}, headers=FRAGMENT)
    assert answer.status_code == 422
    assert "A title cannot be empty." in answer.text


def test_a_deleted_conversation_is_gone(alice, browser):
    conversation = make_answer(alice).conversation
    assert browser.post(f"/c/{conversation.id}/delete", headers=FRAGMENT).status_code == 204
    assert browser.get(f"/c/{conversation.id}").status_code == 404


def test_older_conversations_follow_by_cursor_each_once(alice, browser):
    made = [make_answer(alice, title=f"Talk {number}").conversation for number in range(35)]
    first = browser.get("/").text
    cursor = re.search(r'data-fragment="(/conversations\?cursor=[^"]+)"', first)[1]
    second = browser.get(cursor, headers=FRAGMENT).text
    rows = re.findall(r'<li class="conversation-row"\s+data-conversation-id="([^"]+)"', first + second)
    assert sorted(rows) == sorted(str(conversation.id) for conversation in made)
    assert 'data-part="older"' not in second


def test_a_damaged_cursor_is_refused_with_a_sentence(browser):
    assert browser.get("/conversations?cursor=nonsense", headers=FRAGMENT).status_code == 422


def test_a_failed_answer_says_why(alice, browser):
    answer = make_answer(alice, status=Message.Status.FAILED, content="")
    page = browser.get(f"/c/{answer.conversation_id}").text
    assert "This answer could not be finished." in page


def test_the_pages_have_the_strict_policy_and_stay_out_of_caches(browser):
    answer = browser.get("/")
    policy = answer["Content-Security-Policy"]
    nonce = re.search(r"'nonce-([^']+)'", policy)[1]
    assert f'nonce="{nonce}"' in answer.text
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert "no-store" in answer["Cache-Control"]


def test_a_stranger_finds_nothing_of_anybody_elses(alice):
    answer = make_answer(alice)
    stranger = signed_in_as(make_user("mallory@example.com"))
    conversation = f"/c/{answer.conversation_id}"
    answers = [
        stranger.get(conversation),
        stranger.get(f"{conversation}/messages", headers=FRAGMENT),
        stranger.get(f"{conversation}/row", headers=FRAGMENT),
        stranger.post(f"{conversation}/messages", {"content": "Hello"}, headers=FRAGMENT),
        stranger.post(f"{conversation}/rename", {"title": "Mine"}, headers=FRAGMENT),
        stranger.post(f"{conversation}/delete", headers=FRAGMENT),
        stranger.post(f"/m/{answer.id}/regenerate", headers=FRAGMENT),
        stranger.post(f"/g/{answer.id}/cancel", headers=FRAGMENT),
        stranger.get(f"/c/{new_id()}"),
    ]
    assert [each.status_code for each in answers] == [404] * len(answers)
    assert not any("question" in each.text for each in answers)
    assert Conversation.objects.filter(pk=answer.conversation_id, title="Talk").exists()
    assert str(answer.conversation_id) not in stranger.get("/").text


def test_a_finished_answer_tells_on_every_page_what_became_of_the_wish_to_remember(browser):
    saved = "This will be remembered in other conversations too."
    browser.post("/c/new/messages", {"content": "Remember that I am vegan."})
    answer = Message.objects.get(role="assistant")
    page = f"/c/{answer.conversation_id}"
    assert saved not in browser.get(page).text, "the script tells it of an answer under way"
    Message.objects.filter(pk=answer.pk).update(status="complete", content="I see.")
    assert browser.get(page).text.count(saved) == 1


def test_a_form_without_the_pages_token_is_refused(alice):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.post("/c/new/messages", {"content": "Hello"}).status_code == 403
    assert not Conversation.objects.filter(user=alice).exists()


def test_a_page_costs_few_queries_whatever_the_conversations_length(alice, browser, django_assert_max_num_queries):
    answer = make_answer(alice)
    parent = answer
    for number in range(20):
        role = "user" if number % 2 == 0 else "assistant"
        parent = Message.objects.create(conversation=answer.conversation, parent=parent, role=role, content="More")
    Conversation.objects.filter(pk=answer.conversation_id).update(active_message=parent)
    # Of somebody who has not sent anything lately five of them count what is used: Redis knows nothing then.
    with django_assert_max_num_queries(15):
        assert browser.get(f"/c/{answer.conversation_id}").status_code == 200


def test_every_module_is_fetched_at_once_instead_of_one_after_the_other(browser):
    preloaded = set(re.findall(r'rel="modulepreload"\s+href="/static/([^"]+)"', browser.get("/").text))
    own = {path.relative_to(STATIC).as_posix() for path in (STATIC / "js").rglob("*.js")}
    of_other_pages = {name for name in own if name.startswith(("js/admin/", "js/account/"))}
    assert preloaded == (own - of_other_pages - {"js/app.js"}) | {"js/vendor/markdown-it.js"}


def test_answers_under_way_elsewhere_are_followed_from_where_their_text_has_got_to(alice, browser):
    browser.post("/c/new/messages", {"content": "One"}, headers=FRAGMENT)
    browser.post("/c/new/messages", {"content": "Two"}, headers=FRAGMENT)
    first, second = Message.objects.filter(role="assistant").order_by("id")
    Message.objects.filter(pk=first.pk).update(content="Grüße")
    followed = json.loads(
        re.search(r'<script id="followed" type="application/json">(.*?)</script>', browser.get("/").text)[1]
    )
    assert [one["generation_id"] for one in followed] == [str(first.id), str(second.id)]
    assert followed[0]["event_id"] == Position.of_text("Grüße").event_id
