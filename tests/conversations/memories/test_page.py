"""The page of memories and standing instructions, as a browser without scripts uses it."""

import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from conversations.models import Conversation, Memory, Message
from conversations.services import memories, preferences
from conversations.services.messages import NewMessage, send
from tests.accounts.factories import make_user, signed_in_as

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return make_user("alice@example.com", tier="enterprise")


@pytest.fixture
def browser(alice):
    return signed_in_as(alice)


def remembered(user, content="I am vegan"):
    return memories.create(user=user, content=content).memory


def proposed(user, content="Has a cat"):
    conversation = Conversation.objects.create(user=user, title="About pets")
    message = Message.objects.create(conversation=conversation, role="assistant", content="Meow")
    return memories.propose(user=user, content=content, message=message)


def posted(browser, name, memory=None, **fields):
    path = reverse(name, args=[memory.id] if memory else [])
    return browser.post(path, fields, follow=True)


def test_the_menu_leads_to_it(browser):
    assert 'href="/memories"' in browser.get("/").text


def test_a_visitor_is_sent_to_sign_in():
    assert Client().get("/memories")["Location"].startswith("/accounts/login/?next=/memories")


def test_what_is_written_there_is_remembered(alice, browser):
    page = posted(browser, "memories_page", content="I live\r\nin Ghent")
    assert "Remembered." in page.text
    assert "I live in Ghent</p>" in page.text
    assert "You wrote it here" in page.text
    assert Memory.objects.get().expires_at is None


def test_a_refused_text_stands_in_its_field_beside_the_reason(alice, browser, settings):
    settings.MOST_MEMORY_TOKENS = 10
    page = posted(browser, "memories_page", content="This is <b>far</b> too long")
    assert page.status_code == 422
    assert "10 tokens are allowed" in page.text
    assert "This is &lt;b&gt;far&lt;/b&gt; too long</textarea>" in page.text
    memory = remembered(alice, "I am tall")
    page = posted(browser, "change_memory", memory, content="This would be too long")
    assert page.status_code == 422
    assert re.search(r"<details[^>]* open>.*This would be too long</textarea>", page.text, re.DOTALL)
    assert Memory.objects.get().content == "I am tall"


def test_an_empty_text_is_refused_with_a_sentence(browser):
    assert "Say what is to be remembered." in posted(browser, "memories_page", content=" ").text


def test_it_is_used_to_the_end_of_the_day_that_was_chosen(alice, browser):
    day = timezone.now().date() + timedelta(days=3)
    page = posted(browser, "memories_page", content="I am on holiday", expires_on=day.isoformat())
    end = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    assert Memory.objects.get().expires_at == end
    assert f'value="{day.isoformat()}"' in page.text
    posted(browser, "change_memory", Memory.objects.get(), content="I am away", expires_on="")
    assert Memory.objects.get().expires_at is None


def test_an_expiry_that_is_not_touched_stays_as_it_was(alice, browser):
    past = timezone.now() - timedelta(days=2)
    memory = remembered(alice)
    Memory.objects.update(expires_at=past)
    assert "Expired." in browser.get("/memories").text
    page = posted(browser, "change_memory", memory, content="I was vegan", expires_on=past.date().isoformat())
    assert page.status_code == 200
    memory.refresh_from_db()
    assert (memory.content, memory.expires_at) == ("I was vegan", past)


@pytest.mark.parametrize("day", ["2020-01-31", "9999-12-31", "tomorrow"])
def test_a_day_that_cannot_be_is_refused(browser, day):
    assert posted(browser, "memories_page", content="I am vegan", expires_on=day).status_code == 422
    assert not Memory.objects.exists()


def test_each_is_shown_with_the_conversation_that_it_came_from_until_that_is_gone(alice, browser):
    sent = send(user=alice, conversation_id=None, message=NewMessage("Remember that I am vegan."))
    link = f'href="/c/{sent.conversation.id}#m-{sent.follows.id}"'
    page = browser.get("/memories").text
    assert link in page
    assert "You asked for it" in page
    sent.conversation.delete()
    page = browser.get("/memories").text
    assert "I am vegan." in page
    assert "/c/" not in page


def test_a_memory_is_switched_off_and_on(alice, browser):
    memory = remembered(alice)
    assert "Switched off." in posted(browser, "switch_memory", memory).text
    memory.refresh_from_db()
    assert not memory.enabled
    posted(browser, "switch_memory", memory, on="1")
    memory.refresh_from_db()
    assert memory.enabled


def test_a_memory_is_deleted_for_good(alice, browser):
    page = posted(browser, "delete_memory", remembered(alice))
    assert "Nothing is remembered yet." in page.text
    assert not Memory.objects.exists()


def test_a_proposal_is_accepted_or_declined(alice, browser):
    accepted, declined = proposed(alice), proposed(alice, "Has a dog")
    page = browser.get("/memories").text
    assert "Should this be remembered?" in page
    assert "About pets</a>" in page
    posted(browser, "accept_memory", accepted)
    page = posted(browser, "decline_memory", declined).text
    assert "Should this be remembered?" not in page
    assert [each for each in Memory.objects.all() if each.is_in_force] == list(Memory.objects.all()) == [accepted]


def test_a_proposal_for_which_there_is_no_room_says_so(alice, browser, settings):
    settings.MOST_MEMORIES = 0
    page = posted(browser, "accept_memory", proposed(alice))
    assert (page.status_code, "0 are allowed" in page.text) == (422, True)


def test_an_old_memory_stands_first_and_asks_whether_it_is_true(alice, browser):
    old = remembered(alice, "I am ten years old")
    remembered(alice, "I am tall")
    assert "Still true" not in browser.get("/memories").text
    Memory.objects.filter(pk=old.pk).update(reviewed_at=timezone.now() - timedelta(days=400))
    page = browser.get("/memories").text
    assert page.index("I am ten years old") < page.index("Still true") < page.index("I am tall")
    assert "Still true" not in posted(browser, "review_memory", old).text


def test_memories_are_switched_off_and_on_altogether(alice, browser):
    assert "Memories are not used." in posted(browser, "switch_all_memories").text
    assert not preferences.preference_of(alice.id).uses_memories
    assert "Memories are used." in posted(browser, "switch_all_memories", on="1").text
    assert preferences.preference_of(alice.id).uses_memories


def test_standing_instructions_are_kept_as_they_were_written(alice, browser):
    page = posted(browser, "standing_instructions", instructions="Be brief.\r\n\r\n<b>Metric</b> units.\r\n")
    assert "Be brief.\n\n&lt;b&gt;Metric&lt;/b&gt; units.\n</textarea>" in page.text
    assert preferences.preference_of(alice.id).instructions == "Be brief.\n\n<b>Metric</b> units.\n"
    page = posted(browser, "standing_instructions", instructions="x" * 20_001)
    assert page.status_code == 422
    assert f"{'x' * 20_001}</textarea>" in page.text
    assert preferences.preference_of(alice.id).instructions.startswith("Be brief.")


NAMES = ["change_memory", "switch_memory", "accept_memory", "decline_memory", "review_memory", "delete_memory"]


@pytest.mark.parametrize("name", NAMES)
def test_a_strangers_memory_is_not_found(alice, name):
    memory = remembered(alice)
    stranger = signed_in_as(make_user())
    fields = {"content": "Mine", "on": "1"}
    for one in (memory, Memory(id=uuid4())):
        assert stranger.post(reverse(name, args=[one.id]), fields).status_code == 404
    assert "I am vegan" not in stranger.get("/memories").text
    before = memory.updated_at, memory.reviewed_at, memory.content
    memory.refresh_from_db()
    assert (memory.updated_at, memory.reviewed_at, memory.content) == before
    assert Client().post(reverse(name, args=[memory.id]), fields).status_code == 302


def test_forms_need_their_token(alice):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.post("/memories", {"content": "I am vegan"}).status_code == 403


def test_the_page_asks_the_same_number_of_questions_however_many_there_are(
    alice, browser, django_assert_max_num_queries
):
    for number in range(30):
        send(user=alice, conversation_id=None, message=NewMessage(f"Remember that my number is {number} today."))
    with django_assert_max_num_queries(5):
        browser.get("/memories")
