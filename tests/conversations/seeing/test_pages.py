"""What the model saw, as a page."""

import re

import pytest
from django.test import Client

from conversations.models import Message, Preference
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db


def test_an_answer_leads_to_what_its_model_saw(browser, trimmed):
    chat = browser.get(f"/c/{trimmed[15].conversation_id}").text
    path = f"/g/{trimmed[15].id}/context"
    assert f'href="{path}"' in chat
    page = browser.get(path)
    assert page.status_code == 200
    for part in ("Call me Al.", "Be brief.", "Likes tea.", "It has been deleted.", "They planned a party."):
        assert part in page.text
    assert re.search(r"120 tokens of the 150", page.text)
    assert "6 were read; 8 older ones were left out." in page.text
    assert f"/c/{trimmed[15].conversation_id}#m-{trimmed[15].id}" in page.text


def test_a_message_is_told_by_its_beginning_and_leads_to_it(browser, trimmed):
    Message.objects.filter(pk=trimmed[10].pk).update(content="Which tent? " + "It rains. " * 100)
    page = browser.get(f"/g/{trimmed[15].id}/context").text
    link = re.search(rf'href="/c/{trimmed[10].conversation_id}#m-{trimmed[10].id}">(.*?)</a>', page)
    assert link[1].startswith("Which tent? It rains.")
    assert len(link[1]) <= 80


def test_what_the_server_counted_is_told_rather_than_what_the_prompt_had_at_most(browser, trimmed):
    Message.objects.filter(pk=trimmed[15].pk).update(tokens_in=97)
    assert re.search(r"97 tokens of the 150", browser.get(f"/g/{trimmed[15].id}/context").text)


def test_instructions_that_were_taken_back_are_said_to_be_gone(browser, trimmed):
    Preference.objects.update(instructions="")
    assert "They have been taken back." in browser.get(f"/g/{trimmed[15].id}/context").text


def test_texts_are_shown_as_text(browser, trimmed):
    trimmed[0].conversation.__class__.objects.update(instructions="<b>Be</b>")
    page = browser.get(f"/g/{trimmed[15].id}/context").text
    assert "&lt;b&gt;Be&lt;/b&gt;" in page


def test_an_answer_without_a_record_says_so(browser, trimmed):
    assert "It was not kept" in browser.get(f"/g/{trimmed[1].id}/context").text


def test_a_stranger_finds_nothing(trimmed):
    stranger = Client()
    stranger.force_login(make_user("mallory@example.com"))
    answer = stranger.get(f"/g/{trimmed[15].id}/context")
    assert answer.status_code == 404
    assert "party" not in answer.text
