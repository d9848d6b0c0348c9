"""The page of one's data, as it is without scripts."""

from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from conversations.models import Conversation, Export, Import
from conversations.services.exports import asking, writing
from conversations.services.imports import uploads
from conversations.services.transfers import files
from tests.accounts.factories import signed_in_as
from tests.conversations.transfers.chatgpt_export import chain
from tests.conversations.transfers.conftest import bring

PAGE = "/account/data"


@pytest.fixture
def browser(alice):
    return signed_in_as(alice)


def upload(browser, content=b"[]"):
    given = {"file": SimpleUploadedFile("conversations.json", content)} if content is not None else {}
    return browser.post(f"{PAGE}/imports/new", given)


def test_an_export_is_begun_and_the_page_says_that_it_waits(browser, alice):
    assert browser.post(f"{PAGE}/exports/new")["Location"] == PAGE
    page = browser.get(PAGE).text
    assert "Waits for its turn." in page
    assert "See how far it is" in page
    assert Export.objects.get().user == alice


def test_a_second_press_begins_no_second_export(browser):
    for _ in range(2):
        browser.post(f"{PAGE}/exports/new")
    assert Export.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_written_export_is_fetched_from_the_page_until_it_expires(browser, alice):
    export = asking.ask_for(alice)
    writing.write(export.pk)
    page = browser.get(PAGE).text
    address = f"{PAGE}/exports/{export.pk}/file"
    assert address in page
    assert "Can be fetched until" in page
    fetched = browser.get(address)
    assert fetched.status_code == 200
    assert fetched["Content-Disposition"].startswith("attachment")
    assert "no-store" in fetched["Cache-Control"]
    fetched.close()
    files.delete(files.EXPORTS, Export.objects.get().file)
    assert "not there any more" in browser.get(PAGE).text
    assert browser.get(address).status_code == 404


def test_an_export_that_was_given_up_says_why(browser, alice):
    writing.fail(asking.ask_for(alice).pk)
    assert "could not be written" in browser.get(PAGE).text


def test_a_file_is_taken_in_and_what_came_of_each_conversation_is_told(browser, alice):
    assert upload(browser)["Location"] == PAGE
    assert Import.objects.get().user == alice
    bring(alice, [chain(2, title="<b>Tea</b>"), 7])
    page = browser.get(PAGE).text
    assert "1 imported, 1 refused." in page
    told = browser.get(f"{PAGE}/imports/{Import.objects.order_by('pk').last().pk}").text
    assert "&lt;b&gt;Tea&lt;/b&gt;" in told
    assert "It is not a conversation." in told
    assert f"/c/{Conversation.objects.get().pk}" in told


def test_a_conversation_that_was_deleted_since_is_named_and_leads_nowhere(browser, alice):
    bring(alice, [chain(2)])
    gone = Conversation.objects.get()
    Conversation.objects.all().delete()
    told = browser.get(f"{PAGE}/imports/{Import.objects.get().pk}").text
    assert "A title" in told
    assert str(gone.pk) not in told


def test_a_file_that_cannot_be_read_says_why(browser, alice):
    bring(alice, b"{]")
    page = browser.get(PAGE).text
    assert "There was no conversation in it" not in page
    assert Import.objects.get().report["error"] in page.replace("&#x27;", "'")


@pytest.mark.parametrize(
    ("content", "status", "sentence"),
    [(None, 422, "Choose a file first."), (b"", 422, "This file is empty."), (b" " * 1_001, 413, "too large")],
)
def test_what_cannot_be_taken_in_is_refused_on_the_page(browser, settings, content, status, sentence):
    settings.MAX_IMPORT_BYTES = 1_000
    refused = upload(browser, content)
    assert refused.status_code == status
    assert sentence in refused.text
    assert not Import.objects.exists()


def test_more_files_than_are_read_at_once_are_refused(browser):
    for number in range(3):
        upload(browser, b"[%d]" % number)
    assert upload(browser, b"[4]").status_code == 409


def test_nobody_sees_what_is_anybody_elses(alice, bob):
    bring(bob, [chain(2)])
    export = Export.objects.create(user=bob, status="done", file="bob.zip", byte_count=2)
    stranger = signed_in_as(alice)
    assert str(export.pk) not in stranger.get(PAGE).text
    for path in (f"exports/{export.pk}/file", f"imports/{Import.objects.get().pk}", f"imports/{uuid4()}"):
        assert stranger.get(f"{PAGE}/{path}").status_code == 404


@pytest.mark.parametrize("path", ["", "/exports", "/imports", f"/exports/{uuid4()}/file", f"/imports/{uuid4()}"])
def test_nobody_is_let_in_who_is_not_signed_in(client, db, path):
    answer = client.get(PAGE + path)
    assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, "/accounts/login/")


@pytest.mark.parametrize("path", ["/exports/new", "/imports/new"])
def test_nothing_begins_by_a_link(browser, path):
    assert browser.get(PAGE + path).status_code == 405


def test_the_page_leads_to_the_accounts_deletion_and_is_led_to(browser):
    assert 'href="/account/delete"' in browser.get(PAGE).text
    assert 'href="/account/data"' in browser.get("/account/security").text


def test_the_script_is_told_whether_to_ask_again(browser, alice):
    assert "data-under-way" not in browser.get(f"{PAGE}/imports").text
    upload(browser)
    assert "data-under-way" in browser.get(f"{PAGE}/imports").text
    assert "data-under-way" not in browser.get(f"{PAGE}/exports").text


def test_times_are_those_of_the_users_zone(browser, alice):
    bringing = uploads.accept(alice, SimpleUploadedFile("conversations.json", b"[]"))
    Import.objects.filter(pk=bringing.pk).update(created_at="2030-01-31T23:30:00Z")
    alice.time_zone = "Asia/Tokyo"
    alice.save()
    assert "1 February 2030, 08:30" in browser.get(PAGE).text
