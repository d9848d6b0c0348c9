"""Nothing is changed in the admin without a reason, a right, and a row in the log."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.urls import reverse

from accounts.models import AuditLog, Tier
from foundation.audited_admin import AuditedAdmin
from foundation.read_only_admin import ReadOnlyAdmin
from tests.accounts.factories import PASSWORD, make_key_row, make_user

pytestmark = pytest.mark.django_db
WHY = "They asked for it, ticket 4711."


def sign_in_staff(client, **powers):
    staff = make_user("staff@example.com", password=PASSWORD, is_staff=True, **powers)
    client.force_login(staff)
    return staff


def in_group(client, name):
    staff = sign_in_staff(client)
    staff.groups.add(Group.objects.get(name=name))
    return staff


def suspend(client, user, **more):
    chosen = {"action": "suspend", "_selected_action": [user.pk], "confirmed": "yes", "told": "Spam.", "why": WHY}
    return client.post(reverse("admin:accounts_user_changelist"), chosen | more)


def test_every_admin_of_the_site_is_audited_or_read_only():
    unaudited = [
        model._meta.label
        for model, registered in admin.site._registry.items()
        if not isinstance(registered, AuditedAdmin | ReadOnlyAdmin)
    ]
    assert unaudited == []


def test_no_list_can_be_edited_in_place():
    assert [model._meta.label for model, each in admin.site._registry.items() if each.list_editable] == []


def test_a_suspension_is_in_the_log_with_who_and_why(client):
    staff = sign_in_staff(client, is_superuser=True)
    user = make_user("ann@example.com")
    suspend(client, user)
    row = AuditLog.objects.get(action="suspended")
    assert (row.actor, row.subject_id, row.reason) == (staff, str(user.pk), WHY)
    assert row.changes["is_active"] == {"before": True, "after": False}


def test_without_a_reason_nobody_is_suspended(client):
    sign_in_staff(client, is_superuser=True)
    user = make_user("ann@example.com")
    assert suspend(client, user, why="").status_code == 200
    user.refresh_from_db()
    assert user.is_active
    assert not AuditLog.objects.exists()


def test_a_revoked_key_is_in_the_log_without_its_digest(client):
    sign_in_staff(client, is_superuser=True)
    key, _secret = make_key_row(make_user(), name="laptop")
    chosen = {"action": "revoke", "_selected_action": [key.pk], "confirmed": "yes", "why": WHY}
    assert client.post(reverse("admin:accounts_apikey_changelist"), chosen).status_code == 302
    row = AuditLog.objects.get(action="revoked")
    assert row.subject_id == str(key.pk)
    assert bytes(key.digest).hex() not in str(row.changes)


@pytest.mark.parametrize("page", ["add", "change", "delete"])
def test_the_log_is_changed_by_nobody(client, page):
    sign_in_staff(client, is_superuser=True)
    suspend(client, make_user("ann@example.com"))
    row = AuditLog.objects.get(action="suspended")
    address = reverse(f"admin:accounts_auditlog_{page}", args=[] if page == "add" else [row.pk])
    assert client.post(address, {"reason": "Another.", "post": "yes", "why": WHY}).status_code == 403
    row.refresh_from_db()
    assert row.reason == WHY


@pytest.mark.parametrize(
    ("group", "model", "status"),
    [
        ("Support", "accounts_user", 200),
        ("Support", "accounts_apikey", 200),
        ("Support", "accounts_sanction", 200),
        ("Support", "accounts_tier", 403),
        ("Support", "accounts_invoice", 403),
        ("Support", "accounts_subscription", 403),
        ("Billing", "accounts_invoice", 200),
        ("Billing", "accounts_subscription", 200),
        ("Billing", "accounts_tier", 200),
        ("Billing", "accounts_apikey", 403),
    ],
)
def test_a_group_sees_what_is_its_own(client, group, model, status):
    in_group(client, group)
    assert client.get(reverse(f"admin:{model}_changelist")).status_code == status


def test_billing_suspends_nobody(client):
    in_group(client, "Billing")
    user = make_user("ann@example.com")
    suspend(client, user)
    user.refresh_from_db()
    assert user.is_active


def test_the_tier_of_new_accounts_is_not_deleted(client, settings):
    sign_in_staff(client, is_superuser=True)
    address = reverse("admin:accounts_tier_delete", args=[settings.DEFAULT_TIER])
    assert client.post(address, {"post": "yes", "why": WHY}).status_code == 403
    assert Tier.objects.filter(pk=settings.DEFAULT_TIER).exists()
