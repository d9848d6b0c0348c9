"""Generations in the admin: no text; what a model saw only for those who may, with a reason that is kept."""

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from accounts.models import AuditLog
from conversations.models import Generation, Message
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db
REASON = "The user asked for help, ticket 4711."


def signed_in(user):
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def chief():
    return make_user("chief@example.com", is_staff=True, is_superuser=True)


@pytest.fixture
def admin_of(db):
    def sign_in(*permissions):
        user = make_user("staff@example.com", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        return signed_in(user)

    return sign_in


def context_path(answer):
    return reverse("admin:conversations_generation_context", args=[answer.id])


@pytest.fixture
def secretive(trimmed):
    """The same conversation with words of the user's in every place that could be shown by mistake."""
    Generation.objects.filter(pk=trimmed[15].id).update(options={"max_tokens": 5, "stop": ["swordfish"]})
    Message.objects.filter(pk__in=[trimmed[14].id, trimmed[15].id]).update(content="swordfish")
    trimmed[0].conversation.__class__.objects.update(title="swordfish", instructions="swordfish")
    return trimmed[15]


def test_the_list_and_its_rows_hold_no_text(chief, secretive):
    client = signed_in(chief)
    listed = client.get(reverse("admin:conversations_generation_changelist"))
    row = client.get(reverse("admin:conversations_generation_change", args=[secretive.id]))
    assert (listed.status_code, row.status_code) == (200, 200)
    for page in (listed.text, row.text):
        assert str(secretive.id) in page
        assert "swordfish" not in page
    assert context_path(secretive) in row.text
    assert not AuditLog.objects.exists()


def test_a_generation_is_found_by_its_id_and_by_whose_it_is(chief, secretive):
    client = signed_in(chief)
    for term, count in ((str(secretive.id), 1), ("alice@", 8), ("nobody@", 0)):
        page = client.get(reverse("admin:conversations_generation_changelist"), {"q": term})
        assert page.context["cl"].result_count == count


def test_nothing_is_changed_in_the_admin(chief, secretive):
    client = signed_in(chief)
    for kind in ("change", "delete"):
        address = reverse(f"admin:conversations_generation_{kind}", args=[secretive.id])
        assert client.post(address, {"status": "failed", "post": "yes"}).status_code == 403
    assert client.get(reverse("admin:conversations_generation_add")).status_code == 403
    assert Generation.objects.get(pk=secretive.id).status == "complete"


def test_a_reason_is_asked_for_before_anything_is_shown(chief, secretive):
    client = signed_in(chief)
    for answer in (
        client.get(context_path(secretive)),
        client.post(context_path(secretive), {"reason": ""}),
        client.post(context_path(secretive), {"reason": "   short   "}),
    ):
        assert answer.status_code == 200
        assert "Why do you need to see it?" in answer.text
        assert "swordfish" not in answer.text
    assert not AuditLog.objects.exists()


def test_who_gives_a_reason_sees_it_and_that_is_kept(chief, secretive):
    answer = signed_in(chief).post(context_path(secretive), {"reason": REASON})
    assert answer.status_code == 200
    assert "They planned a party." in answer.text
    assert "no-store" in answer["Cache-Control"]
    kept = AuditLog.objects.get()
    assert (kept.actor, kept.action, kept.reason) == (chief, "saw_context", REASON)
    assert (kept.subject_type, kept.subject_id) == ("generation", str(secretive.id))


def test_a_reason_is_kept_also_where_there_is_nothing_to_see(chief, trimmed):
    answer = signed_in(chief).post(context_path(trimmed[1]), {"reason": REASON})
    assert "It was not kept" in answer.text
    assert AuditLog.objects.count() == 1


def test_staff_without_the_permission_see_nothing(admin_of, secretive):
    client = admin_of("view_generation")
    row = client.get(reverse("admin:conversations_generation_change", args=[secretive.id]))
    assert row.status_code == 200
    assert context_path(secretive) not in row.text
    assert client.get(context_path(secretive)).status_code == 403
    assert client.post(context_path(secretive), {"reason": REASON}).status_code == 403
    assert not AuditLog.objects.exists()


def test_staff_with_the_permission_see_it(admin_of, secretive):
    client = admin_of("view_generation", "see_context")
    assert "They planned a party." in client.post(context_path(secretive), {"reason": REASON}).text


def test_who_is_no_staff_is_sent_away(alice, secretive):
    answer = signed_in(alice).post(context_path(secretive), {"reason": REASON})
    assert answer.status_code == 302
    assert not AuditLog.objects.exists()


def test_the_audit_log_is_shown_and_cannot_be_changed(chief, secretive):
    client = signed_in(chief)
    client.post(context_path(secretive), {"reason": REASON})
    kept = AuditLog.objects.get()
    assert REASON in client.get(reverse("admin:accounts_auditlog_changelist")).text
    for kind in ("change", "delete"):
        answer = client.post(reverse(f"admin:accounts_auditlog_{kind}", args=[kept.id]), {"reason": "x", "post": "yes"})
        assert answer.status_code == 403
    assert client.get(reverse("admin:accounts_auditlog_add")).status_code == 403
    assert AuditLog.objects.get().reason == REASON
