"""Who of the staff may see and do what: the groups, those who may only look, and the accounts of staff themselves."""

import pytest
from django.contrib import admin
from django.test import RequestFactory

from accounts.models import APIKey, AuditLog, Invoice, Tier, User
from tests.accounts.admin.staff import WHY, act, address_of, change, chief_client, staff_client
from tests.accounts.billing.making import make_invoice
from tests.accounts.factories import PASSWORD, make_key_row, make_user

pytestmark = pytest.mark.django_db

SEEN = {
    "Support": {
        "accounts.user", "accounts.apikey", "accounts.sanction", "accounts.usagerecord", "accounts.invitation",
        "account.emailaddress", "mfa.authenticator", "usersessions.usersession",
    },
    "Billing": {
        "accounts.user", "accounts.tier", "accounts.subscription", "accounts.invoice", "accounts.creditnote",
        "accounts.stripeevent", "accounts.usagerecord",
    },
    None: set(),
}  # fmt: skip
DONE = {
    "Support": {
        "accounts.user": {"sign_out", "warn", "suspend", "lift"},
        "accounts.apikey": {"revoke"},
        "accounts.invitation": {"revoke"},
        "account.emailaddress": {"vouch"},
        "mfa.authenticator": {"end"},
        "usersessions.usersession": {"end"},
    },
    "Billing": {
        "accounts.user": {"change_tier"},
        "accounts.invoice": {"mark_as_paid", "credit_it"},
        "accounts.tier": {"delete_selected"},
    },
    None: {},
}
GROUPS = ["Support", "Billing", None]
VIEW_ALL = [f"view_{model._meta.model_name}" for model in admin.site._registry]


def label(model):
    return model._meta.label_lower


def actions_for(client):
    """Return the actions that are offered to a member of staff, by model."""
    request = RequestFactory().get("/")
    request.user = User.objects.get(pk=client.staff.pk)
    offered = {label(model): set(each.get_actions(request)) for model, each in admin.site._registry.items()}
    return {name: actions for name, actions in offered.items() if actions}


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_sees_what_is_its_own_and_nothing_else(group):
    client = staff_client(group=group)
    seen = {label(model) for model in admin.site._registry if client.get(address_of(model)).status_code == 200}
    assert seen == SEEN[group]


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_is_offered_what_is_its_own_and_nothing_else(group):
    assert actions_for(staff_client(group=group)) == DONE[group]


def test_who_may_only_look_sees_everything_and_is_offered_nothing():
    client = staff_client(*VIEW_ALL)
    assert {client.get(address_of(model)).status_code for model in admin.site._registry} == {200}
    assert actions_for(client) == {}


def test_who_may_only_look_changes_nothing_by_asking_for_it_anyway():
    client = staff_client(*VIEW_ALL)
    user = make_user(password=PASSWORD)
    key, _secret = make_key_row(user)
    invoice = make_invoice(user)
    for action in ("sign_out", "warn", "suspend", "lift", "change_tier"):
        act(client, action, user, told="Spam.", tier="plus")
    act(client, "revoke", key)
    act(client, "mark_as_paid", invoice)
    act(client, "credit_it", invoice, amount="1.00", told="An outage.")
    act(client, "delete_selected", Tier.objects.get(pk="enterprise"), post="yes")
    for row in (user, Tier.objects.get(pk="plus")):
        for page in ("change", "delete"):
            assert client.post(address_of(row, page), {"post": "yes", "why": WHY}).status_code == 403
    for model in (User, Tier):
        assert client.get(address_of(model, "add")).status_code == 403
    assert not AuditLog.objects.exists()
    assert APIKey.objects.get().revoked_at is None
    assert Invoice.objects.get().status == "open"
    assert Tier.objects.filter(pk="enterprise").exists()


def test_support_does_nothing_of_billings_and_billing_nothing_of_supports():
    support, billing = staff_client(group="Support"), staff_client(group="Billing")
    user = make_user()
    key, _secret = make_key_row(user)
    invoice = make_invoice(user)
    act(support, "change_tier", user, tier="enterprise")
    assert act(support, "mark_as_paid", invoice).status_code == 403
    act(billing, "suspend", user, told="Spam.")
    act(billing, "sign_out", user)
    assert act(billing, "revoke", key).status_code == 403
    assert not AuditLog.objects.exists()


def test_support_acts_on_everybody_but_staff():
    support = staff_client(group="Support")
    user, colleague = make_user(), make_user("colleague@example.com", is_staff=True)
    page = act(support, "suspend", user, colleague, told="Spam.")
    assert "Only superusers act on the accounts of staff: colleague@example.com." in page.text
    assert User.objects.filter(is_active=False).count() == 0
    act(support, "suspend", user, told="Spam.")
    assert list(User.objects.filter(is_active=False)) == [user]


@pytest.mark.parametrize(
    "powers", [{"is_staff": True}, {"is_superuser": True}, {"is_staff": True, "is_superuser": True}]
)
def test_support_takes_nothing_from_those_who_may_more(powers):
    support = staff_client(group="Support")
    colleague = make_user("colleague@example.com", password=PASSWORD, **powers)
    key, _secret = make_key_row(colleague)
    assert support.post(address_of(colleague, "change"), {"name": "X", "why": WHY}).status_code == 403
    act(support, "sign_out", colleague)
    act(support, "revoke", key)
    act(support, "vouch", colleague.emailaddress_set.get())
    assert not AuditLog.objects.exists()


def test_support_changes_a_name_and_no_address_power_tier_or_password():
    support = staff_client(group="Support")
    user = make_user("ann@example.com", password=PASSWORD)
    wished = {"email": "mine@example.com", "is_staff": "on", "is_superuser": "on", "tier": "enterprise"}
    assert change(support, user, name="Ann", time_zone="", **wished).status_code == 302
    new = "another-" + PASSWORD
    address = address_of(user, "change").replace("change", "password")
    passwords = {"password1": new, "password2": new, "usable_password": "true", "why": WHY}
    assert support.post(address, passwords).status_code == 403
    changed = User.objects.get(pk=user.pk)
    assert (changed.name, changed.email, changed.tier_id) == ("Ann", "ann@example.com", "free")
    assert (changed.is_staff, changed.is_superuser) == (False, False)
    assert changed.check_password(PASSWORD)


def test_support_makes_accounts_of_the_tier_of_new_accounts_only():
    support = staff_client(group="Support")
    fields = {"email": "new@example.com", "password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    wished = {"tier": "enterprise", "is_staff": "on", "is_superuser": "on"}
    assert support.post(address_of(User, "add"), {**fields, **wished, "why": WHY}).status_code == 302
    made = User.objects.get(email="new@example.com")
    assert (made.tier_id, made.is_staff, made.is_superuser) == ("free", False, False)


def test_only_superusers_give_powers():
    chief = chief_client()
    user = make_user("ann@example.com")
    assert change(chief, user, email=user.email, name="", time_zone="", is_staff="on").status_code == 302
    assert User.objects.get(pk=user.pk).is_staff
