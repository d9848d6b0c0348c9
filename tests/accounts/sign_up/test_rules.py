"""Who may sign up, on the pages and in the app login alike."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from accounts.invitations import invite
from accounts.models import Invitation, Tier, User
from accounts.sign_up_rules import check_domain
from tests.accounts.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db


def sign_up(client, email="new@example.com"):
    return client.post("/accounts/signup/", {"email": email, "password1": PASSWORD})


def sign_up_in_app(email="new@example.com", **headers):
    body = {"email": email, "password": PASSWORD}
    return Client().post("/_allauth/app/v1/auth/signup", body, content_type="application/json", headers=headers)


def has_account(email="new@example.com"):
    return User.objects.filter(email=email).exists()


def path_of(link):
    return link.removeprefix("http://localhost:8000")


def test_a_closed_site_makes_no_account(client, settings):
    settings.SIGN_UP = "closed"
    assert "No new accounts" in client.get("/accounts/signup/").text
    sign_up(client)
    assert sign_up_in_app().status_code == 400
    assert not has_account()


def test_an_invited_person_signs_up_once_with_the_tier_of_the_invitation(client, settings):
    settings.SIGN_UP = "invite"
    sign_up(client)
    assert not has_account()
    invitation, link = invite("New@Example.com", tier=Tier.objects.get(pk="plus"))
    client.get(path_of(link))
    sign_up(client)
    assert User.objects.get(email="new@example.com").tier_id == "plus"
    invitation.refresh_from_db()
    assert invitation.accepted_at is not None
    spent = Client().get(path_of(link))
    assert (spent.status_code, "no longer good" in spent.text) == (404, True)


def test_the_form_has_the_address_of_the_invitation(client, settings):
    settings.SIGN_UP = "invite"
    _, link = invite("invited@example.com")
    assert 'value="invited@example.com"' in client.get(path_of(link), follow=True).text


@pytest.mark.parametrize(
    ("mode", "is_offered"), [("open", True), ("domain", True), ("invite", False), ("closed", False)]
)
def test_the_sign_in_page_offers_an_account_only_where_one_can_be_made(client, settings, mode, is_offered):
    settings.SIGN_UP = mode
    assert ("Create an account" in client.get("/accounts/login/").text) is is_offered


def test_an_invitation_is_for_its_own_address(client, settings):
    settings.SIGN_UP = "invite"
    _, link = invite("invited@example.com")
    client.get(path_of(link))
    assert "for another address" in sign_up(client, "somebody@example.com").text
    assert not has_account("somebody@example.com")


def test_an_expired_invitation_opens_nothing(client, settings):
    settings.SIGN_UP = "invite"
    invitation, link = invite("new@example.com")
    client.get(path_of(link))
    Invitation.objects.filter(pk=invitation.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    sign_up(client)
    assert not has_account()


def test_an_app_signs_up_with_the_invitations_secret(settings):
    settings.SIGN_UP = "invite"
    _, link = invite("new@example.com")
    assert sign_up_in_app().status_code == 400
    assert sign_up_in_app(**{"X-Invitation": "a" * 43}).status_code == 400
    sign_up_in_app(**{"X-Invitation": link.rpartition("/")[2]})
    assert has_account()


def test_the_secret_of_an_invitation_is_not_stored():
    _, link = invite("new@example.com")
    assert link.rpartition("/")[2] not in str(Invitation.objects.values().get())


def test_staff_make_invitations_on_the_command_line(capsys):
    call_command("invite", "new@example.com", tier="plus", days=3)
    assert "/account/invitation/" in capsys.readouterr().out
    for wrong in (["nobody"], ["new@example.com", "--tier=none"], ["new@example.com", "--days=0"]):
        with pytest.raises(CommandError):
            call_command("invite", *wrong)
    assert Invitation.objects.count() == 1


INSIDE = [
    "a@example.com",
    "a@EXAMPLE.com",
    "a@bücher.example",
    "a@xn--bcher-kva.example",
    '"a@evil.example"@example.com',
]
OUTSIDE = [
    "a@evil-example.com",
    "a@example.com.evil.example",
    "a@sub.example.com",
    '"a@example.com"@evil.example',
    "a@example.co",
    "a@exаmple.com",  # with a Cyrillic letter
    "a@",
    "a",
]


@pytest.mark.parametrize("email", INSIDE)
def test_an_address_of_the_domain_is_taken(settings, email):
    settings.SIGN_UP, settings.SIGN_UP_DOMAINS = "domain", ["Example.com", "bücher.example"]
    check_domain(email)


@pytest.mark.parametrize("email", OUTSIDE)
def test_an_address_of_another_domain_is_not(settings, email):
    settings.SIGN_UP, settings.SIGN_UP_DOMAINS = "domain", ["Example.com", "bücher.example"]
    with pytest.raises(ValidationError):
        check_domain(email)


def test_a_domain_limited_site_takes_no_other_addresses_on_any_way(client, settings):
    settings.SIGN_UP, settings.SIGN_UP_DOMAINS = "domain", ["example.com"]
    sign_up(client, "a@evil-example.com")
    assert sign_up_in_app("a@evil-example.com").status_code == 400
    assert User.objects.count() == 0
    sign_up(client)
    assert has_account()


def test_an_address_cannot_be_changed_to_one_of_another_domain(client, settings):
    settings.SIGN_UP, settings.SIGN_UP_DOMAINS = "domain", ["example.com"]
    user = make_user("alice@example.com", password=PASSWORD)
    client.post("/accounts/login/", {"login": user.email, "password": PASSWORD})
    page = client.post("/accounts/email/", {"email": "alice@evil.example", "action_add": ""}, follow=True)
    if page.redirect_chain:
        page = client.post(page.redirect_chain[-1][0], {"password": PASSWORD}, follow=True)
    assert "Use an address of this organisation" in page.text
