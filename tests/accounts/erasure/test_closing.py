"""An account that is to be erased is closed at once: nothing opens it any more, and its owner has a receipt."""

from datetime import timedelta

import pytest
from django.contrib.auth import authenticate
from django.core import mail

from accounts.erasure import receipts
from accounts.erasure.closing import request_erasure
from accounts.models import Erasure, User
from accounts.signals import credentials_revoked
from tests.accounts.erasure.steps import erase_wholly
from tests.accounts.factories import PASSWORD, bearer, make_key, make_user, signed_in_as
from tests.accounts.test_access_tokens import sign_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return make_user("alice@example.com", password=PASSWORD)


def delete_account(client, user, body=None):
    fields = {} if body is None else {"data": body, "content_type": "application/json"}
    return client.delete("/v1/account", headers=bearer(make_key(user)), **fields)


def test_the_answer_says_where_the_receipt_is_and_until_when_all_is_erased(client, alice):
    answer = delete_account(client, alice)
    assert answer.status_code == 202
    told = answer.json()
    erasure = Erasure.objects.get(pk=told["erasure_id"])
    assert told["status"] == "under_way"
    assert told["receipt_url"] == receipts.link(erasure)
    assert (receipts.receipt_of(erasure).due_at - erasure.requested_at).total_seconds() == 24 * 3600
    assert answer["Cache-Control"] == "no-store"


def test_no_key_session_token_or_password_opens_a_closed_account(client, alice):
    key, browser, tokens = make_key(alice), signed_in_as(alice), sign_in(client, alice)
    delete_account(client, alice)
    assert client.get("/v1/limits", headers=bearer(key)).status_code == 401
    assert client.get("/v1/limits", headers=bearer(tokens["access_token"])).status_code == 403
    assert browser.get("/v1/limits").status_code == 403
    assert browser.get("/account/delete").status_code == 302
    assert authenticate(None, email=alice.email, password=PASSWORD) is None
    renewed = client.post(
        "/_allauth/app/v1/tokens/refresh", {"refresh_token": tokens["refresh_token"]}, content_type="application/json"
    )
    assert renewed.status_code >= 400


def test_who_has_something_open_for_it_is_told_after_the_commit(alice, django_capture_on_commit_callbacks):
    told = []

    def hear(sender, user_id, **_kwargs):
        told.append(user_id)

    credentials_revoked.connect(hear)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            request_erasure(alice.pk)
            assert told == []
    finally:
        credentials_revoked.disconnect(hear)
    assert told == [alice.pk]


def test_asked_for_twice_it_is_one_erasure(alice):
    assert request_erasure(alice.pk) == request_erasure(alice.pk)
    assert Erasure.objects.count() == 1


def test_whoever_names_another_address_erases_nothing(client, alice):
    answer = delete_account(client, alice, {"confirm": "bob@example.com"})
    assert answer.status_code == 422
    assert answer.json()["error"]["param"] == "confirm"
    assert User.objects.get(pk=alice.pk).is_active
    assert delete_account(client, alice, {"confirm": " Alice@Example.com "}).status_code == 202


@pytest.mark.parametrize("body", [{"sure": True}, {"confirm": None}, {"confirm": 7}, []], ids=str)
def test_a_body_that_says_something_else_is_refused(client, alice, body):
    assert delete_account(client, alice, body).status_code == 422
    assert not Erasure.objects.exists()


def test_a_key_without_the_scope_cannot_erase(client, alice):
    key = make_key(alice, ("chat", "read", "write"))
    assert client.delete("/v1/account", headers=bearer(key)).status_code == 403
    assert not Erasure.objects.exists()


def test_the_account_is_told_to_who_has_it(client, alice):
    told = client.get("/v1/account", headers=bearer(make_key(alice))).json()
    assert (told["account_id"], told["email"], told["tier"]) == (str(alice.pk), alice.email, "free")


def test_the_page_asks_to_sign_in_again_and_for_the_address(client, alice):
    client.force_login(alice)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    page = client.get("/account/delete")
    assert page.status_code == 200
    assert "Invoices" in page.content.decode()
    refused = client.post("/account/delete", {"address": "bob@example.com"})
    assert refused.status_code == 422
    assert User.objects.get(pk=alice.pk).is_active
    done = client.post("/account/delete", {"address": alice.email})
    assert done.status_code == 302
    assert client.get(done.url).status_code == 200
    assert not User.objects.get(pk=alice.pk).is_active
    assert "_auth_user_id" not in client.session


def test_who_signed_in_long_ago_has_to_say_the_password_again(alice):
    browser = signed_in_as(alice)
    answer = browser.get("/account/delete")
    assert (answer.status_code, answer.url.partition("?")[0]) == (302, "/accounts/reauthenticate/")
    assert browser.post("/account/delete", {"address": alice.email}).status_code == 302
    assert not Erasure.objects.exists()


def test_the_link_is_mailed_once_to_the_address_before_that_is_erased(alice):
    erasure = erase_wholly(request_erasure(alice.pk).pk)
    receipts.mail(erasure.pk)
    [sent] = mail.outbox
    assert sent.to == ["alice@example.com"]
    assert receipts.link(erasure) in sent.body


def test_the_receipt_is_read_with_its_secret_alone(client, alice):
    erasure = erase_wholly(request_erasure(alice.pk).pk)
    link = receipts.link(erasure)
    told = client.get(link, headers={"Accept": "application/json"})
    assert told.json()["status"] == "completed"
    assert "account" in [store["name"] for store in told.json()["stores"]]
    assert [each["what"] for each in told.json()["kept"]]
    assert told["Referrer-Policy"] == "no-referrer"
    page = client.get(link)
    assert "has been erased" in page.content.decode()
    assert alice.email not in page.content.decode() + told.content.decode()
    assert str(alice.pk) not in page.content.decode() + told.content.decode()
    for wrong in (link[:-1], link + "A", link.partition("?")[0], link.replace("secret=", "secret=%00")):
        assert client.get(wrong).status_code == 404
    assert client.get(f"/erasures/{alice.pk}?{link.partition('?')[2]}").status_code == 404


def test_a_receipt_is_kept_for_a_year(alice, time_machine):
    erasure = erase_wholly(request_erasure(alice.pk).pk)
    time_machine.move_to(erasure.completed_at + timedelta(days=364))
    assert receipts.delete_outlived() == 0
    time_machine.move_to(erasure.completed_at + timedelta(days=366))
    assert receipts.delete_outlived() == 1
    assert not Erasure.objects.filter(pk=erasure.pk).exists()
