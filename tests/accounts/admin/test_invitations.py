"""Invitations in the admin: made with a link that is shown once and sent by mail, and revoked."""

import re

import pytest
from django.core import mail
from django.test import Client

from accounts.models import AuditLog, Invitation, User
from accounts.tasks import mail_invitation, mail_owed_invitations
from tests.accounts.admin.staff import WHY, act, address_of, chief_client, logged, staff_client
from tests.accounts.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db
NEW = "new@example.com"


@pytest.fixture
def chief():
    return chief_client()


def make(client, **fields):
    sent = {"email": NEW, "tier": "", "days": "7", "why": WHY, **fields}
    return client.post(address_of(Invitation, "add"), sent, follow=True)


def links_in(page):
    return re.findall(r"http://localhost:8000(/\S+/invitation/[A-Za-z0-9_-]{43})", page.text)


def opens(link):
    return Client().get(link).status_code == 302


def test_the_link_is_shown_once_and_lets_one_person_sign_up(chief, settings, client):
    settings.SIGN_UP = "invite"
    [link] = links_in(make(chief, tier="plus"))
    for address in (address_of(Invitation), address_of(Invitation.objects.get(), "change")):
        page = chief.get(address)
        assert page.status_code == 200
        assert links_in(page) == []
    client.get(link)
    client.post("/accounts/signup/", {"email": NEW, "password1": PASSWORD})
    assert User.objects.get(email=NEW).tier_id == "plus"


def test_the_same_link_is_sent_by_mail(chief, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        [link] = links_in(make(chief))
    mail_invitation(str(Invitation.objects.get().pk))
    mail_owed_invitations()
    [sent] = mail.outbox
    assert sent.to == [NEW]
    assert link in sent.body


def test_the_log_says_who_invited_whom_and_nothing_that_opens_the_door(chief):
    [link] = links_in(make(chief, tier="plus"))
    invitation = Invitation.objects.get()
    row = logged("added", invitation)
    assert (row.actor, row.reason) == (chief.staff, WHY)
    assert row.changes["email"] == {"before": None, "after": NEW}
    assert row.changes["tier"]["after"] == "plus"
    for secret in (link.rpartition("/")[2], bytes(invitation.digest).hex()):
        assert secret not in str(row.changes)
    assert invitation.invited_by == chief.staff


@pytest.mark.parametrize(
    "fields",
    [
        {"email": "nobody"},
        {"email": ""},
        {"days": "0"},
        {"days": "366"},
        {"days": "-1"},
        {"tier": "royal"},
        {"why": ""},
    ],
)
def test_what_makes_no_sense_is_refused(chief, fields):
    assert "errorlist" in make(chief, **fields).text
    assert not Invitation.objects.exists()
    assert not AuditLog.objects.exists()


def test_whoever_has_an_account_is_not_invited(chief):
    make_user(NEW)
    assert "There is an account with this address already." in make(chief, email="New@Example.com").text
    assert not Invitation.objects.exists()


def test_a_revoked_invitation_opens_nothing(chief):
    [link] = links_in(make(chief))
    assert opens(link)
    act(chief, "revoke", Invitation.objects.get())
    assert not opens(link)
    row = logged("revoked", Invitation.objects.get())
    assert (row.actor, row.reason) == (chief.staff, WHY)
    assert row.changes["expires_at"]["before"] > row.changes["expires_at"]["after"]


def test_what_was_used_or_revoked_is_not_revoked_again(chief):
    make(chief)
    for _ in range(2):
        act(chief, "revoke", Invitation.objects.get())
    assert logged("revoked")


def test_an_invitation_is_neither_changed_nor_deleted(chief):
    make(chief)
    invitation = Invitation.objects.get()
    for page in ("change", "delete"):
        sent = {"email": "other@example.com", "post": "yes", "why": WHY}
        assert chief.post(address_of(invitation, page), sent).status_code == 403
    assert Invitation.objects.get().email == NEW


def test_support_invites_and_billing_does_not():
    assert links_in(make(staff_client(group="Support")))
    assert make(staff_client(group="Billing"), email="other@example.com").status_code == 403
    assert Invitation.objects.get().email == NEW
