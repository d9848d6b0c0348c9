"""Invitations by mail: sent once, after the commit, and only while they are good."""

from datetime import timedelta

import pytest
from celery.signals import before_task_publish
from django.core import mail
from django.db import transaction
from django.utils import timezone

from accounts import invitations
from accounts.models import Invitation, User
from accounts.tasks import mail_invitation, mail_owed_invitations
from tests.accounts.factories import PASSWORD

pytestmark = pytest.mark.django_db
NEW = "new@example.com"
NO_MAIL_SERVER = {
    "BACKEND": "django.core.mail.backends.smtp.EmailBackend",
    "OPTIONS": {"host": "127.0.0.1", "port": 9, "timeout": 2},
}


@pytest.fixture
def sent_tasks():
    """What was handed to the broker, as (task, arguments)."""
    heard = []

    def hear(sender, body, **_kwargs):
        heard.append((sender, list(body[0])))

    before_task_publish.connect(hear)
    yield heard
    before_task_publish.disconnect(hear)


def invite(**fields):
    return invitations.invite(NEW, by_mail=True, **fields)


def send(invitation):
    mail_invitation(str(invitation.pk))


def test_the_mail_has_the_link_and_the_link_lets_its_reader_sign_up(client, settings):
    settings.SIGN_UP = "invite"
    invitation, link = invite()
    send(invitation)
    [sent] = mail.outbox
    assert sent.to == [NEW]
    assert link in sent.body
    client.get(link.removeprefix(settings.SITE_URL))
    client.post("/accounts/signup/", {"email": NEW, "password1": PASSWORD})
    assert User.objects.filter(email=NEW).exists()


def test_sent_twice_it_is_one_mail(settings):
    invitation, _link = invite()
    send(invitation)
    send(invitation)
    mail_owed_invitations()
    assert len(mail.outbox) == 1
    invitation.refresh_from_db()
    assert invitation.mailed_at is not None


def test_only_what_was_to_be_mailed_is(client):
    invitation, _link = invitations.invite(NEW)
    send(invitation)
    assert invitations.owed_mails() == []
    assert mail.outbox == []


@pytest.mark.parametrize(
    "end", [{"expires_at": timezone.now() - timedelta(seconds=1)}, {"accepted_at": timezone.now()}]
)
def test_an_invitation_that_is_no_longer_good_is_not_sent(end):
    invitation, _link = invite()
    Invitation.objects.filter(pk=invitation.pk).update(**end)
    send(invitation)
    assert invitations.owed_mails() == []
    assert mail.outbox == []


def test_the_task_is_sent_after_the_commit_and_knows_no_secret(sent_tasks, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        invitation, _link = invite()
        assert sent_tasks == []
    assert sent_tasks == [("accounts.tasks.mail_invitation", [str(invitation.pk)])]


def test_an_invitation_that_is_rolled_back_sends_nothing(sent_tasks, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        invite()
        transaction.set_rollback(True)
    assert sent_tasks == []


def test_what_could_not_be_sent_is_sent_later(settings, sent_tasks):
    invitation, _link = invite()
    mailers = settings.MAILERS
    settings.MAILERS = {"default": NO_MAIL_SERVER}
    with pytest.raises(OSError):
        send(invitation)
    settings.MAILERS = mailers
    mail_owed_invitations()
    mail_owed_invitations()
    assert sent_tasks == [("accounts.tasks.mail_invitation", [str(invitation.pk)])] * 2
    send(invitation)
    assert [each.to for each in mail.outbox] == [[NEW]]
