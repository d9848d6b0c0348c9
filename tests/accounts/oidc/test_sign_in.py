"""Signing in through the organisation's own OpenID Connect provider."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from accounts.invitations import invite
from accounts.models import User
from chatsite.oidc import oidc_provider
from tests.accounts.factories import PASSWORD, make_user
from tests.accounts.oidc.provider import CLIENT_ID, CLIENT_SECRET
from tests.own_processes import ROOT, free_port, wait_until

pytestmark = pytest.mark.django_db

LOGIN = "/accounts/oidc/oidc/login/"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments):
        return None


_browser = urllib.request.build_opener(_NoRedirects)


@pytest.fixture(scope="module")
def provider_url():
    url = f"http://127.0.0.1:{(port := free_port())}"
    process = subprocess.Popen([sys.executable, "-m", "tests.accounts.oidc.provider", str(port)], cwd=ROOT)
    try:
        wait_until(lambda: _is_up(url), what="the provider")
        yield url
    finally:
        process.terminate()
        process.wait()


def _is_up(url):
    try:
        with urllib.request.urlopen(f"{url}/jwks", timeout=2):
            return True
    except OSError:
        return False


@pytest.fixture
def provider(provider_url, settings):
    """Tell the provider whom it signs in; the rest of the fixture's life, it does."""
    settings.SOCIALACCOUNT_PROVIDERS = oidc_provider(
        issuer=provider_url, client_id=CLIENT_ID, client_secret=CLIENT_SECRET, name="Example Ltd", allows_http=True
    )

    def signs_in(email="ann@example.com", *, sub="1", email_verified=True, **claims):
        identity = {"sub": sub, "email": email, "email_verified": email_verified, "name": "Ann", **claims}
        request = urllib.request.Request(f"{provider_url}/identity", json.dumps(identity).encode())
        with urllib.request.urlopen(request):
            pass

    signs_in()
    return signs_in


def come_back(client, address):
    """Follow the way to the provider and return the address on this site to which it sends the browser."""
    try:
        _browser.open(address)
    except urllib.error.HTTPError as redirect:
        return redirect.headers["Location"].removeprefix("http://testserver")
    raise AssertionError("the provider redirected nowhere")


def sign_in(client):
    leaving = client.post(LOGIN)
    return client.get(come_back(client, leaving["Location"]))


def is_signed_in(client):
    return "_auth_user_id" in client.session


def test_a_newcomer_gets_an_account_with_the_verified_address(client, provider):
    assert "Sign in with Example Ltd" in client.get("/accounts/login/").text
    assert sign_in(client)["Location"] == "/"
    user = User.objects.get()
    assert (user.email, user.tier_id, user.has_usable_password()) == ("ann@example.com", "free", False)
    assert EmailAddress.objects.get().verified
    assert is_signed_in(client)
    elsewhere = Client()
    sign_in(elsewhere)
    assert is_signed_in(elsewhere)
    assert User.objects.count() == 1


def test_an_address_that_the_provider_has_not_verified_makes_no_account(client, provider):
    provider(email_verified=False)
    response = sign_in(client)
    assert response.status_code == 403
    assert "has not verified" in response.text
    assert (User.objects.count(), is_signed_in(client)) == (0, False)


def test_an_account_is_joined_where_its_address_is_verified_on_both_sides(client, provider):
    user = make_user("ann@example.com", password=PASSWORD)
    EmailAddress.objects.update_or_create(user=user, email=user.email, defaults={"verified": True, "primary": True})
    sign_in(client)
    assert is_signed_in(client)
    assert SocialAccount.objects.get().user == user


@pytest.mark.parametrize(("here", "there"), [(False, True), (True, False), (False, False)])
def test_an_account_is_not_joined_otherwise(client, provider, here, there):
    user = make_user("ann@example.com", password=PASSWORD)
    EmailAddress.objects.update_or_create(user=user, email=user.email, defaults={"verified": here, "primary": True})
    provider(email_verified=there)
    assert sign_in(client).status_code == 403
    assert not is_signed_in(client)
    assert SocialAccount.objects.count() == 0
    user.refresh_from_db()
    assert user.check_password(PASSWORD)


def test_a_suspended_account_is_not_let_in(client, provider):
    sign_in(client)
    User.objects.update(is_active=False)
    elsewhere = Client()
    sign_in(elsewhere)
    assert not is_signed_in(elsewhere)


def test_another_persons_way_back_opens_nothing(client, provider):
    leaving = client.post(LOGIN)
    address = come_back(client, leaving["Location"])
    victim = Client()
    victim.get(address)
    assert not is_signed_in(victim)
    client.get(address)
    assert is_signed_in(client)


def test_a_way_back_is_good_once(client, provider):
    address = come_back(client, client.post(LOGIN)["Location"])
    client.get(address)
    client.post("/accounts/logout/")
    client.get(address)
    assert not is_signed_in(client)


def test_a_code_that_was_stolen_is_worth_nothing_on_another_way_back(client, provider):
    stolen = parse_qs(urlsplit(come_back(Client(), client.post(LOGIN)["Location"])).query)["code"][0]
    thief = Client()
    own = urlsplit(come_back(thief, thief.post(LOGIN)["Location"]))
    state = parse_qs(own.query)["state"][0]
    thief.get(own.path, {"code": stolen, "state": state})
    assert not is_signed_in(thief)
    assert User.objects.count() == 0


def test_leaving_carries_state_and_a_proof_key(client, provider):
    asked = parse_qs(urlsplit(client.post(LOGIN)["Location"]).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert len(asked["state"][0]) >= 16
    assert client.get(LOGIN).status_code == 200, "only a form leads away"


def test_no_picture_is_fetched(client, provider, provider_url):
    provider(picture=f"{provider_url}/picture.png")
    sign_in(client)
    with urllib.request.urlopen(f"{provider_url}/fetched") as answer:
        assert "/picture.png" not in json.load(answer)


@pytest.mark.parametrize("mode", ["closed", "invite", "domain"])
def test_the_rules_of_signing_up_hold_here_too(client, provider, settings, mode):
    settings.SIGN_UP, settings.SIGN_UP_DOMAINS = mode, ["elsewhere.example"]
    assert sign_in(client).status_code == 403
    assert User.objects.count() == 0


@pytest.mark.parametrize("mode", ["closed", "invite", "domain"])
def test_who_has_an_account_signs_in_whoever_may_sign_up(client, provider, settings, mode):
    settings.SIGN_UP, settings.SIGN_UP_DOMAINS = mode, ["elsewhere.example"]
    user = make_user("ann@example.com", password=PASSWORD)
    sign_in(client)
    assert is_signed_in(client)
    assert SocialAccount.objects.get().user == user


def test_an_invited_person_signs_up_through_the_provider(client, provider, settings):
    settings.SIGN_UP = "invite"
    invitation, link = invite("ann@example.com")
    client.get(link.removeprefix("http://localhost:8000"))
    sign_in(client)
    assert is_signed_in(client)
    invitation.refresh_from_db()
    assert invitation.accepted_at is not None


def test_without_an_issuer_there_is_no_provider(client):
    assert oidc_provider(issuer="", client_id="", client_secret="", name="") == {}
    assert "Sign in with your organisation" not in client.get("/accounts/login/").text
    assert client.get(LOGIN).status_code == 404


def test_half_a_configuration_is_refused():
    with pytest.raises(ImproperlyConfigured):
        oidc_provider(issuer="http://insecure.example", client_id="a", client_secret="b", name="")
    with pytest.raises(ImproperlyConfigured):
        oidc_provider(issuer="https://example.com", client_id="", client_secret="b", name="")
