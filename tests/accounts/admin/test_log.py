"""The audit log: a row for each kind of change, with the values before and after, no secrets, and none without it."""

import re

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.db.models import QuerySet
from django.template.response import TemplateResponse
from django.test import Client, RequestFactory

from accounts.audit import keep
from accounts.models import AuditLog, Erasure, Tier, User
from foundation.audit import keep_with
from foundation.audited_admin import AuditedAdmin
from foundation.audited_changes import row_values
from foundation.read_only_admin import ReadOnlyAdmin
from inference.fleet_seeding import apply_fleet
from inference.models import ModelAlias, ModelVersion, Replica, SeededFleet
from tests.accounts.admin.staff import WHY, act, address_of, change, chief_client, logged
from tests.accounts.factories import PASSWORD, make_key_row, make_user

pytestmark = pytest.mark.django_db
SECRET_NAME = re.compile(r"password|digest|secret|token$|session_key|^key$|^data$|extra_data")


class LogIsFull(Exception):
    pass


@pytest.fixture
def chief():
    return chief_client()


@pytest.fixture
def ann():
    return make_user("ann@example.com", password=PASSWORD)


@pytest.fixture
def fleet():
    for model in (ModelAlias, ModelVersion, SeededFleet):  # also where a running site has left its fleet behind
        model.objects.all().delete()
    apply_fleet("small=http://a:1,http://b:2;large=http://c:3")


@pytest.fixture
def full_log():
    """No row can be added to the log."""

    def refuse(act):
        raise LogIsFull

    keep_with(refuse)
    yield
    keep_with(keep)


def registered():
    return [pytest.param(model, each, id=model._meta.label) for model, each in admin.site._registry.items()]


def request_of(client, method="get", **sent):
    request = getattr(RequestFactory(), method)("/", sent)
    request.user = client.staff
    return request


@pytest.mark.parametrize(("model", "registration"), registered())
def test_an_admin_is_audited_or_lets_even_superusers_change_nothing(chief, model, registration):
    assert isinstance(registration, AuditedAdmin | ReadOnlyAdmin)
    assert registration.list_editable == ()
    request = request_of(chief)
    if not isinstance(registration, AuditedAdmin):
        assert not registration.has_add_permission(request)
        assert not registration.has_change_permission(request)
        assert not registration.has_delete_permission(request)
        assert registration.get_actions(request) == {}


@pytest.mark.parametrize(("model", "registration"), registered())
def test_every_action_asks_why_before_it_does_anything(chief, model, registration):
    request = request_of(chief, "post", why="short", confirmed="yes", post="yes")
    for action in registration.get_actions(request).values():
        answer = action.func(registration, request, model._default_manager.none())
        assert isinstance(answer, TemplateResponse)
        asked = answer.context_data.get("form") or answer.context_data["why"]
        assert "why" in asked.errors


@pytest.mark.parametrize(("model", "registration"), registered())
def test_no_row_of_the_log_could_hold_a_secret(model, registration):
    assert [name for name in row_values(model()) if SECRET_NAME.search(name)] == []


def test_a_changed_account_has_the_values_before_and_after(chief, ann):
    support = Group.objects.get(name="Support")
    ann.groups.add(Group.objects.get(name="Billing"))
    sent = {"email": ann.email, "name": "Ann", "time_zone": "", "is_staff": "on", "groups": [support.pk]}
    assert change(chief, ann, **sent).status_code == 302
    row = logged("changed", ann)
    assert (row.actor, row.reason) == (chief.staff, WHY)
    assert row.changes == {
        "name": {"before": "", "after": "Ann"},
        "is_staff": {"before": False, "after": True},
        "groups": {"before": ["Billing"], "after": ["Support"]},
    }


def test_a_form_that_is_saved_unchanged_says_that_nothing_changed(chief, ann):
    change(chief, ann, email=ann.email, name="", time_zone="")
    assert logged("changed", ann).changes == {}


def test_an_account_that_is_made_is_in_the_log_without_its_password(chief):
    fields = {"email": "new@example.com", "tier": "plus", "password1": PASSWORD, "password2": PASSWORD}
    chief.post(address_of(User, "add"), {**fields, "usable_password": "true", "why": WHY})
    made = User.objects.get(email="new@example.com")
    row = logged("added", made)
    assert row.changes["tier"] == {"before": None, "after": "plus"}
    assert PASSWORD not in str(row.changes)
    assert made.password not in str(row.changes)


def test_a_new_password_is_in_the_log_without_itself_and_ends_every_sign_in(chief, ann):
    client = Client()
    client.post("/accounts/login/", {"login": ann.email, "password": PASSWORD})
    old, new = ann.password, "another-" + PASSWORD
    address = address_of(ann, "change").replace("change", "password")
    sent = {"password1": new, "password2": new, "usable_password": "true"}
    assert 'name="why"' in chief.get(address).text
    assert "errorlist" in chief.post(address, {**sent, "why": "short"}).text
    assert chief.post(address, {**sent, "why": WHY}).status_code == 302
    row = logged("changed", ann)
    ann.refresh_from_db()
    assert row.reason == WHY
    for secret in (PASSWORD, new, old, ann.password):
        assert secret not in str(row.changes)
    assert client.get("/v1/limits").status_code == 401


def test_a_model_and_the_shares_of_its_versions_are_logged_as_one_change(chief, fleet):
    alias = ModelAlias.objects.get(name="small")
    share = alias.shares.get()
    large = ModelVersion.objects.get(name="large")
    sent = {
        "name": "small", "position": alias.position, "fallback": "",
        "shares-TOTAL_FORMS": "2", "shares-INITIAL_FORMS": "1",
        "shares-0-id": share.pk, "shares-0-alias": alias.pk, "shares-0-version": share.version_id,
        "shares-0-weight": "90", "shares-1-version": large.pk, "shares-1-weight": "10",
    }  # fmt: skip
    assert change(chief, alias, **sent).status_code == 302
    changes = logged("changed", alias).changes
    assert len(changes) == 2
    old, new = sorted(changes.values(), key=lambda each: "after" in each)
    assert old == {"weight": {"before": share.weight, "after": 90}}
    assert new["before"] is None
    assert (new["after"]["version"], new["after"]["weight"]) == (large.pk, 10)
    gone = {**sent, "shares-INITIAL_FORMS": "2", "shares-1-id": alias.shares.get(version=large).pk}
    change(chief, alias, **gone, **{"shares-1-DELETE": "on"})
    [removed] = AuditLog.objects.filter(action="changed").first().changes.values()
    assert (removed["before"]["weight"], removed["after"]) == (10, None)


def test_what_a_deletion_takes_along_is_logged_row_by_row(chief, fleet):
    version = ModelVersion.objects.create(name="spare")
    replicas = [Replica.objects.create(version=version, url=f"http://s:{port}") for port in (1, 2)]
    assert chief.post(address_of(version, "delete"), {"post": "yes", "why": WHY}).status_code == 302
    assert logged("deleted", version).changes["name"] == {"before": "spare", "after": None}
    for replica in replicas:
        assert logged("deleted", replica).changes["url"] == {"before": replica.url, "after": None}
    assert AuditLog.objects.count() == 3


def test_several_that_are_deleted_at_once_have_a_row_each(chief, fleet):
    versions = [ModelVersion.objects.create(name=name) for name in ("spare", "other")]
    act(chief, "delete_selected", *versions, post="yes")
    assert not ModelVersion.objects.filter(name__in=("spare", "other")).exists()
    for version in versions:
        assert logged("deleted", version).reason == WHY


def test_the_fleets_actions_are_in_the_log(chief, fleet):
    replica, alias = Replica.objects.get(url="http://c:3"), ModelAlias.objects.get(name="large")
    act(chief, "drain", replica)
    act(chief, "undrain", replica)
    act(chief, "make_default", alias)
    assert logged("drained", replica).changes == {"is_draining": {"before": False, "after": True}}
    assert logged("undrained", replica).changes == {"is_draining": {"before": True, "after": False}}
    assert logged("made_default", alias).reason == WHY


def test_what_a_group_may_do_is_in_the_log(chief):
    group = Group.objects.create(name="Night shift")
    right = Permission.objects.get(codename="view_user")
    change(chief, group, name="Night shift", permissions=[right.pk])
    assert logged("changed", group).changes == {"permissions": {"before": [], "after": [str(right)]}}


def session_of(user):
    Client().post("/accounts/login/", {"login": user.email, "password": PASSWORD})
    return UserSession.objects.get(user=user)


def second_factor_of(user):
    return Authenticator.objects.create(user=user, type=Authenticator.Type.TOTP, data={"secret": "JBSWY3DP"})


def account_elsewhere_of(user):
    return SocialAccount.objects.create(user=user, provider="oidc", uid="42", extra_data={"name": "Ann"})


@pytest.mark.parametrize("make", [session_of, second_factor_of, account_elsewhere_of])
def test_ways_to_sign_in_are_ended_with_a_row_and_without_what_they_hold(chief, ann, make):
    row = make(ann)
    act(chief, "end", row)
    assert not type(row).objects.filter(pk=row.pk).exists()
    assert logged("ended", row).changes == {"user": {"before": str(ann.pk), "after": None}}


def test_an_address_is_vouched_for_with_a_row(chief, ann):
    address = EmailAddress.objects.get(user=ann)
    EmailAddress.objects.filter(pk=address.pk).update(verified=False)
    act(chief, "vouch", address)
    assert EmailAddress.objects.get(pk=address.pk).verified
    assert logged("vouched_for", address).changes == {"verified": {"before": False, "after": True}}


def test_an_address_that_another_account_has_confirmed_is_not_vouched_for(chief, ann):
    other = make_user("bob@example.com")
    wrong = EmailAddress.objects.create(user=other, email="ann@example.com", primary=False, verified=False)
    page = act(chief, "vouch", wrong)
    assert "Another account has confirmed ann@example.com." in page.text
    assert not AuditLog.objects.exists()


def test_a_key_is_revoked_with_one_row(chief, ann):
    key, _secret = make_key_row(ann)
    act(chief, "revoke", key)
    act(chief, "revoke", key)
    changes = logged("revoked", key).changes
    assert changes == {"key": {"before": "usable", "after": "revoked"}}
    assert bytes(key.digest).hex() not in str(changes)


CHANGES = {
    "a form": lambda chief, ann: change(chief, ann, email=ann.email, name="Ann", time_zone=""),
    "an action": lambda chief, ann: act(chief, "suspend", ann, told="Spam."),
    "an addition": lambda chief, ann: chief.post(address_of(Group, "add"), {"name": "Night shift", "why": WHY}),
    "a deletion": lambda chief, ann: chief.post(
        address_of(Tier.objects.get(pk="enterprise"), "delete"), {"post": "yes", "why": WHY}
    ),
    "a bulk deletion": lambda chief, ann: act(chief, "delete_selected", Tier.objects.get(pk="enterprise"), post="yes"),
    "signing out": lambda chief, ann: act(chief, "sign_out", ann),
}


def state():
    """Return everything that these changes would change."""
    tables: list[QuerySet] = [User.objects.order_by("pk"), Group.objects.all(), Tier.objects.order_by("pk")]
    tables += [UserSession.objects.order_by("pk")]
    return [list(table.values("pk", *([] if table.model is not User else ["name", "is_active"]))) for table in tables]


@pytest.mark.parametrize("what", list(CHANGES))
def test_what_cannot_be_logged_does_not_happen(chief, ann, full_log, what):
    session_of(ann)
    before = state()
    with pytest.raises(LogIsFull):
        CHANGES[what](chief, ann)
    assert state() == before
    assert not AuditLog.objects.exists()


def test_what_is_refused_half_way_leaves_no_row(chief, ann):
    colleague = make_user("zoe@example.com")
    act(chief, "suspend", ann, colleague, told="Spam.")
    Erasure.objects.create(user_id=colleague.pk, digest=b"1" * 32)
    page = act(chief, "lift", ann, colleague)
    assert "This account is being erased: it stays closed." in page.text
    assert not User.objects.get(pk=ann.pk).is_active
    assert not AuditLog.objects.filter(action="suspension_lifted").exists()


@pytest.mark.parametrize("page", ["add", "change", "delete"])
def test_the_log_is_changed_by_nobody(chief, ann, page):
    act(chief, "suspend", ann, told="Spam.")
    row = logged("suspended")
    address = address_of(AuditLog, page) if page == "add" else address_of(row, page)
    assert chief.post(address, {"reason": "Another.", "post": "yes", "why": WHY}).status_code == 403
    row.refresh_from_db()
    assert row.reason == WHY


def test_the_log_leads_to_what_a_row_is_about_as_long_as_it_is_there(chief, ann):
    act(chief, "suspend", ann, told="Spam.")
    shown = chief.get(address_of(AuditLog))
    assert address_of(ann, "change") in shown.text
    assert WHY in shown.text
    AuditLog.objects.create(action="saw", subject_type="nothing", subject_id="1", reason=WHY, actor=chief.staff)
    assert chief.get(address_of(AuditLog)).status_code == 200
    found = chief.get(address_of(AuditLog), {"q": str(ann.pk)}).text
    assert "1 result" in found
    assert "suspended" in found
