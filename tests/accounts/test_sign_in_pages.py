"""Signing up, in and out, confirming an address, and a forgotten password, on the site's own pages."""

import re

import pytest
from allauth.account.models import EmailAddress
from django.test import Client
from django.urls import reverse

from accounts.models import User
from chatsite.mailers import mailer
from tests.accounts.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db

NEW_PASSWORD = "another-" + PASSWORD


@pytest.fixture
def confirmed_addresses_only(settings):
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"


@pytest.fixture
def alice():
    return make_user("alice@example.com", password=PASSWORD)


def sign_up(client, email="new@example.com", password=PASSWORD):
    return client.post("/accounts/signup/", {"email": email, "password1": password})


def sign_in(client, email, password=PASSWORD):
    return client.post("/accounts/login/", {"login": email, "password": password})


def is_signed_in(client):
    return "_auth_user_id" in client.session


def link_in(mail):
    return re.search(r"http://testserver(/\S+)", mail.body)[1]


def test_a_newcomer_signs_up_with_an_address_and_a_password(client):
    response = sign_up(client, "New@Example.com")
    assert (response.status_code, response["Location"]) == (302, "/")
    assert is_signed_in(client)
    user = User.objects.get(email="new@example.com")
    assert (user.tier_id, user.is_staff) == ("free", False)


def test_an_address_is_confirmed_through_the_link_in_the_mail(client, mailoutbox, confirmed_addresses_only):
    assert sign_up(client)["Location"] == "/accounts/confirm-email/"
    assert not is_signed_in(client)
    [mail] = mailoutbox
    assert mail.to == ["new@example.com"]
    address = link_in(mail)
    assert "new@example.com" in client.get(address).text
    assert not EmailAddress.objects.get().verified
    client.post(address)
    assert EmailAddress.objects.get().verified
    assert sign_in(client, "new@example.com")["Location"] == "/"


def test_an_unconfirmed_address_does_not_sign_in(client, confirmed_addresses_only):
    sign_up(client)
    assert sign_in(Client(), "new@example.com")["Location"] == "/accounts/confirm-email/"


def test_signing_up_does_not_tell_whether_an_address_has_an_account(
    client, alice, mailoutbox, confirmed_addresses_only
):
    known, unknown = sign_up(client, alice.email), sign_up(Client(), "nobody@example.com")
    assert (known.status_code, known["Location"]) == (unknown.status_code, unknown["Location"])
    assert "already" in mailoutbox[0].subject
    assert User.objects.filter(email=alice.email).count() == 1


def test_signing_in_and_out(client, alice):
    assert sign_in(client, "ALICE@example.com")["Location"] == "/"
    assert is_signed_in(client)
    client.get("/accounts/logout/")
    assert is_signed_in(client)
    client.post("/accounts/logout/")
    assert not is_signed_in(client)


def test_a_wrong_password_and_an_unknown_address_look_alike(client, alice):
    pages = [sign_in(Client(), email, "wrong").text for email in (alice.email, "nobody@example.com")]
    stripped = [re.sub(r'value="[^"]*"', "", page) for page in pages]
    assert stripped[0] == stripped[1]
    assert 'role="alert"' in pages[0]


def test_a_suspended_account_is_told_so_and_not_signed_in(client):
    make_user("sam@example.com", password=PASSWORD, is_active=False)
    response = client.post("/accounts/login/", {"login": "sam@example.com", "password": PASSWORD}, follow=True)
    assert not is_signed_in(client)
    assert "suspended" in response.text


def test_guessing_a_password_is_stopped(client, alice):
    for _ in range(5):
        sign_in(client, alice.email, "wrong")
    response = sign_in(client, alice.email)
    assert "Too many failed login attempts" in response.text
    assert not is_signed_in(client)


def test_the_next_page_may_not_lead_elsewhere(client, alice):
    response = client.post("/accounts/login/?next=https://evil.example/", {"login": alice.email, "password": PASSWORD})
    assert response["Location"] == "/"


def test_a_forgotten_password_is_replaced_through_the_link_in_the_mail(client, alice, mailoutbox):
    client.post("/accounts/password/reset/", {"email": alice.email})
    address = link_in(mailoutbox[0])
    page = client.get(address, follow=True)
    form_address = page.redirect_chain[-1][0]
    client.post(form_address, {"password1": NEW_PASSWORD, "password2": NEW_PASSWORD})
    alice.refresh_from_db()
    assert alice.check_password(NEW_PASSWORD)
    assert "no longer works" in Client().get(address, follow=True).text


def test_asking_for_a_new_password_does_not_tell_whether_an_address_has_an_account(client, alice, mailoutbox):
    known = client.post("/accounts/password/reset/", {"email": alice.email}, follow=True)
    unknown = Client().post("/accounts/password/reset/", {"email": "nobody@example.com"}, follow=True)
    assert known.redirect_chain == unknown.redirect_chain
    assert known.text == unknown.text
    assert mailoutbox[1].to == ["nobody@example.com"]


def test_a_changed_password_signs_out_everywhere_else(client, alice):
    elsewhere = Client()
    sign_in(elsewhere, alice.email)
    sign_in(client, alice.email)
    fields = {"oldpassword": PASSWORD, "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    client.post("/accounts/password/change/", fields)
    assert client.get("/v1/limits").status_code == 200
    assert elsewhere.get("/v1/limits").status_code == 401


def test_an_address_changes_only_after_the_password_and_once_the_new_one_is_confirmed(client, alice, mailoutbox):
    sign_in(client, alice.email)
    asked = client.post("/accounts/email/", {"email": "alice@new.example", "action_add": ""})
    assert asked["Location"].startswith("/accounts/reauthenticate/")
    assert mailoutbox == []
    client.post(asked["Location"], {"password": PASSWORD})
    alice.refresh_from_db()
    assert alice.email == "alice@example.com"
    [mail] = [mail for mail in mailoutbox if mail.to == ["alice@new.example"]]
    assert "waits to be confirmed" in client.get("/accounts/email/").text
    client.post(link_in(mail))
    alice.refresh_from_db()
    assert alice.email == "alice@new.example"


def test_an_unconfirmed_address_cannot_be_changed_and_stays_the_login(client):
    sign_up(client, "mistyped@example.com")
    asked = client.post("/accounts/email/", {"email": "right@example.com", "action_add": ""})
    assert "Confirm the address that you have" in asked.text
    assert User.objects.get().email == "mistyped@example.com"
    assert sign_in(Client(), "mistyped@example.com")["Location"] == "/"


def test_an_address_that_somebody_took_meanwhile_is_not_confirmed(client, alice, mailoutbox):
    sign_in(client, alice.email)
    asked = client.post("/accounts/email/", {"email": "wanted@example.com", "action_add": ""})
    client.post(asked["Location"], {"password": PASSWORD})
    [mail] = [mail for mail in mailoutbox if mail.to == ["wanted@example.com"]]
    make_user("wanted@example.com")
    client.post(link_in(mail))
    alice.refresh_from_db()
    assert alice.email == "alice@example.com"


def test_signing_out_everywhere_else(client, alice):
    elsewhere = Client()
    sign_in(elsewhere, alice.email)
    sign_in(client, alice.email)
    assert "everywhere else" in client.get("/accounts/sessions/").text
    client.post("/accounts/sessions/")
    assert elsewhere.get("/v1/limits").status_code == 401
    assert client.get("/v1/limits").status_code == 200


PAGES_OF_NOBODY = [
    "account_login",
    "account_signup",
    "account_inactive",
    "account_reset_password",
    "account_reset_password_done",
    "account_reset_password_from_key_done",
    "account_email_verification_sent",
]
PAGES_OF_SOMEBODY = [
    "account_logout",
    "account_email",
    "account_change_password",
    "account_reauthenticate",
    "usersessions_list",
    "mfa_index",
    "mfa_list_webauthn",
]


def page_at(client, name):
    response = client.get(reverse(name))
    assert response.status_code == 200
    return response


@pytest.mark.parametrize("name", [*PAGES_OF_NOBODY, *PAGES_OF_SOMEBODY])
def test_every_page_has_the_products_look_and_obeys_the_content_policy(client, alice, name):
    if name in PAGES_OF_SOMEBODY:
        sign_in(client, alice.email)
    response = page_at(client, name)
    page = response.text
    assert 'class="card card--narrow"' in page
    assert page.count("<h1") == 1
    assert re.search(r"<title>\s*\S.* · Chat</title>", page)
    assert not re.search(r"<script(?! type=.module. src=)|<style|\sstyle=|\son\w+=", page)
    assert "'unsafe-inline'" not in response["Content-Security-Policy"]
    for control in re.findall(r"<input[^>]*>", page):
        if 'type="hidden"' not in control:
            assert f'for="{re.search(r'id="([^"]+)"', control)[1]}"' in page
    assert all(" type=" in button for button in re.findall(r"<button[^>]*>", page))


def test_an_error_is_tied_to_its_field(client):
    page = sign_up(client, "no address", "short").text
    assert re.search(r'<input[^>]*name="email"[^>]*aria-invalid="true"[^>]*aria-describedby="id_email_error"', page)
    assert 'id="id_email_error"' in page
    assert 'id="id_password1_error"' in page


def test_a_password_is_never_sent_back(client):
    assert "hunter2-hunter2" not in sign_up(client, "no address", "hunter2-hunter2").text


def test_what_is_written_into_a_form_is_shown_as_text(client):
    page = client.post("/accounts/login/", {"login": '"><script>alert(1)</script>@x', "password": "x"}).text
    assert "<script>" not in page


def test_a_mail_is_plain_and_names_the_site(client, mailoutbox, confirmed_addresses_only):
    sign_up(client)
    [mail] = mailoutbox
    assert mail.subject == "Confirm your email address"
    assert "&" not in mail.body
    assert mail.body.startswith("Hello,")


def test_a_mail_on_the_console_keeps_its_link_in_one_line(client, settings, capsys, confirmed_addresses_only):
    settings.MAILERS = {"default": mailer({"EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"})}
    sign_up(client)
    printed = capsys.readouterr().out
    [address] = re.findall(r"^http://testserver(/accounts/confirm-email/\S+/)$", printed, re.MULTILINE)
    assert "new@example.com" in client.get(address).text
