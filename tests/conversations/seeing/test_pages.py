"""What the model saw, as a page."""

import re

import pytest
from django.test import Client

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
