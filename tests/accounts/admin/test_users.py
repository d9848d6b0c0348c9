"""Accounts in the admin: what is told of them, and what is done to them."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts import sanctions
from accounts.models import AuditLog, Sanction, TokenBudget, TokenReservation, User
from accounts.signals import credentials_revoked
from foundation.ids import new_id
from tests.accounts.admin.staff import WHY, act, address_of, chief_client, logged, staff_client
from tests.accounts.billing.making import make_invoice
from tests.accounts.factories import PASSWORD, bearer, make_key_row, make_user
from tests.accounts.test_access_tokens import sign_in

pytestmark = pytest.mark.django_db
TOLD = "Sent the same advertisement to everybody."


@pytest.fixture
def chief():
    return chief_client()


@pytest.fixture
def ann():
    return make_user("ann@example.com", password=PASSWORD, name="Ann Archer")


def use(user, used, pool=""):
    TokenBudget.objects.create(user=user, day=datetime.now(UTC).date(), pool=pool, used=used)


def begin_answer(user):
    TokenReservation.objects.create(
        generation_id=new_id(), user=user, model="small", day=datetime.now(UTC).date(), tokens=100
    )


def sign_in_with_lynx(client, user):
    client.post("/accounts/login/", {"login": user.email, "password": PASSWORD}, headers={"User-Agent": "Lynx/2.9"})


def listed(page, user):
    """Return the texts of a user's line in the list, without its markup."""
    [row] = [row for row in page.text.split("<tr>")[1:] if f">{user.email}<" in row]
    return row


def statements_of_the_list(client):
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address_of(User)).status_code == 200
    return len(captured)


def fill_with_people(count):
    for _ in range(count):
        user = make_user()
        use(user, 10)
        use(user, 20, pool="large")
        begin_answer(user)
        sanctions.warn(user, reason=TOLD, by=None)


def test_the_list_takes_as_many_statements_for_fifty_as_for_one(chief):
    fill_with_people(1)
    statements_of_the_list(chief)  # what is read once and kept is read
    with_one = statements_of_the_list(chief)
    fill_with_people(49)
    assert statements_of_the_list(chief) == with_one


def test_the_list_tells_tier_usage_answers_sessions_and_standing(chief, ann, client):
    use(ann, 1234)
    begin_answer(ann)
    begin_answer(ann)
    sign_in_with_lynx(client, ann)
    row = listed(chief.get(address_of(User)), ann)
    for shown in (">free<", ">1,234 of 100,000<", '"field-answers_under_way">2<', '"field-sessions">1<', ">active<"):
        assert shown in row


def test_tokens_of_models_with_limits_of_their_own_are_told_apart(chief, ann):
    use(ann, 50)
    use(ann, 7000, pool="large")
    row = listed(chief.get(address_of(User)), ann)
    assert ">50 of 100,000, and 7,000 apart<" in row


def test_yesterdays_tokens_are_not_todays(chief, ann):
    TokenBudget.objects.create(user=ann, day=datetime.now(UTC).date() - timedelta(days=1), used=999)
    assert ">0 of 100,000<" in listed(chief.get(address_of(User)), ann)


def test_the_list_tells_who_is_suspended_and_who_is_not_any_more(chief, ann):
    act(chief, "suspend", ann, told=TOLD)
    assert "suspended, 1 sanction on record" in listed(chief.get(address_of(User)), ann)
    act(chief, "lift", ann)
    assert "active, 1 sanction on record" in listed(chief.get(address_of(User)), ann)


def test_the_page_tells_usage_standing_sanctions_keys_sessions_and_invoices(chief, ann, client):
    invoice = make_invoice(ann)
    use(ann, 4321)
    begin_answer(ann)
    key, _secret = make_key_row(ann, name="laptop")
    sign_in_with_lynx(client, ann)
    sanctions.warn(ann, reason=TOLD, by=chief.staff)
    page = chief.get(address_of(ann, "change")).text
    for shown in ("4,321", "active, 1 sanction on record", TOLD, key.prefix, "Lynx/2.9", invoice.number):
        assert shown in page
    assert client.session.session_key not in page


def test_a_session_that_has_ended_is_not_told_as_one(chief, ann, client):
    sign_in_with_lynx(client, ann)
    assert "Lynx/2.9" in chief.get(address_of(ann, "change")).text
    client.session.flush()
    assert "Lynx/2.9" not in chief.get(address_of(ann, "change")).text
    assert '"field-sessions">0<' in listed(chief.get(address_of(User)), ann)


@pytest.mark.parametrize(
    "make", [chief_client, partial(staff_client, group="Support"), partial(staff_client, "view_user")]
)
def test_nothing_of_a_passwords_hash_is_shown(ann, make):
    page = make().get(address_of(ann, "change"))
    assert page.status_code == 200
    algorithm, salt, digest = ann.password.split("$")
    for part in (f"{algorithm}<", salt[:6], digest[:6]):
        assert part not in page.text


def test_superusers_are_led_to_where_another_password_is_set(chief, ann):
    assert "Reset password" in chief.get(address_of(ann, "change")).text
    ann.set_unusable_password()
    ann.save()
    assert "Set password" in chief.get(address_of(ann, "change")).text
    assert "password/" not in staff_client(group="Support").get(address_of(ann, "change")).text


def test_nobody_signs_in_as_somebody_else(chief, ann):
    page = chief.get(address_of(ann, "change")).text.lower()
    assert "impersonat" not in page
    assert "log in as" not in page


def test_signing_out_everywhere_ends_sessions_tokens_and_what_is_open(
    chief, ann, client, django_capture_on_commit_callbacks
):
    tokens = sign_in(client, ann)
    told = []

    def hear(sender, user_id, credential, **_kwargs):
        told.append((user_id, credential))

    credentials_revoked.connect(hear)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            act(chief, "sign_out", ann)
    finally:
        credentials_revoked.disconnect(hear)
    assert client.get("/v1/limits", headers=bearer(tokens["access_token"])).status_code == 401
    renewed = client.post(
        "/_allauth/app/v1/tokens/refresh", {"refresh_token": tokens["refresh_token"]}, content_type="application/json"
    )
    assert renewed.status_code >= 400
    assert (ann.pk, None) in told
    assert logged("signed_out_everywhere", ann).changes == {"sessions": {"before": 1, "after": 0}}


def test_a_key_is_no_session_and_stays_good(chief, ann, client):
    _key, secret = make_key_row(ann)
    act(chief, "sign_out", ann)
    assert client.get("/v1/limits", headers=bearer(secret)).status_code == 200


def test_a_suspension_has_the_end_and_the_two_reasons_that_were_given(chief, ann):
    ends_at = (timezone.now() + timedelta(days=3)).replace(second=0, microsecond=0)
    act(chief, "suspend", ann, told=TOLD, ends_at=ends_at.strftime("%Y-%m-%dT%H:%M"))
    sanction = Sanction.objects.get()
    assert (sanction.user, sanction.reason, sanction.ends_at, sanction.imposed_by) == (ann, TOLD, ends_at, chief.staff)
    row = logged("suspended", ann)
    assert (row.actor, row.reason) == (chief.staff, WHY)
    assert row.changes["until"]["after"] == ends_at.isoformat()


def test_an_end_in_the_past_is_refused_with_a_sentence(chief, ann):
    page = act(chief, "suspend", ann, told=TOLD, ends_at="2020-01-01T00:00")
    assert "The end of a suspension must lie in the future." in page.text
    assert not Sanction.objects.exists()
    assert not AuditLog.objects.exists()


def test_several_are_suspended_at_once_each_with_a_row(chief):
    people = [make_user() for _ in range(3)]
    act(chief, "suspend", *people, told=TOLD)
    assert not User.objects.filter(pk__in=[each.pk for each in people], is_active=True).exists()
    assert {row.subject_id for row in AuditLog.objects.filter(action="suspended")} == {str(each.pk) for each in people}


def test_a_warning_is_on_record_with_who_and_why(chief, ann):
    act(chief, "warn", ann, told=TOLD)
    assert Sanction.objects.get().kind == "warning"
    assert (logged("warned", ann).actor, logged("warned", ann).reason) == (chief.staff, WHY)


def test_lifting_is_on_record_and_lets_in_again(chief, ann):
    act(chief, "suspend", ann, told=TOLD)
    act(chief, "lift", ann)
    ann.refresh_from_db()
    assert ann.is_active
    assert logged("suspension_lifted", ann).actor == chief.staff


def test_an_action_asks_first_and_does_nothing_before_it_is_told_why(chief, ann):
    asked = chief.post(address_of(User), {"action": "suspend", "_selected_action": [ann.pk]})
    for shown in (ann.email, "Why?", "What the user reads as the reason", "Until (UTC)", "Every sign-in ends at once."):
        assert shown in asked.text
    for lacking in ({"why": ""}, {"why": "short"}, {"told": ""}):
        again = act(chief, "suspend", ann, **{"told": TOLD, **lacking})
        assert "errorlist" in again.text
    assert not Sanction.objects.exists()


def test_an_account_is_deleted_by_nobody_here(chief, ann):
    assert chief.post(address_of(ann, "delete"), {"post": "yes", "why": WHY}).status_code == 403
    act(chief, "delete_selected", ann, post="yes")
    assert User.objects.filter(pk=ann.pk).exists()
