"""Who comes into the admin, and what of accounts and keys is shown and changed there."""

import pytest
from django.urls import reverse

from accounts.callers import caller_from_bearer
from accounts.exceptions import KeyRevoked
from accounts.models import User
from foundation.ids import new_id
from tests.accounts import settling
from tests.accounts.factories import PASSWORD, make_key_row, make_user

pytestmark = pytest.mark.django_db
WHY = "They asked for it, ticket 4711."


@pytest.fixture
def staff(client):
    staff = make_user("staff@example.com", password=PASSWORD, is_staff=True, is_superuser=True)
    client.force_login(staff)
    return client


def test_an_account_is_made_with_an_address_and_a_password(staff):
    fields = {"email": "New@Example.com", "tier": "plus", "password1": PASSWORD, "password2": PASSWORD}
    response = staff.post(reverse("admin:accounts_user_add"), {**fields, "usable_password": "true", "why": WHY})
    assert response.status_code == 302
    user = User.objects.get(email="new@example.com")
    assert user.check_password(PASSWORD)
    assert user.tier_id == "plus"


def test_staff_can_give_an_account_a_new_password(staff):
    user = make_user(password=PASSWORD)
    new = "another-" + PASSWORD
    address = reverse("admin:auth_user_password_change", args=[user.pk])
    response = staff.post(address, {"password1": new, "password2": new, "usable_password": "true", "why": WHY})
    assert response.status_code == 302
    user.refresh_from_db()
    assert user.check_password(new)


def test_an_account_is_suspended_and_not_deleted(staff):
    user = make_user("ann@example.com")
    page = staff.get(reverse("admin:accounts_user_change", args=[user.pk]))
    assert page.status_code == 200
    assert staff.post(reverse("admin:accounts_user_delete", args=[user.pk]), {"post": "yes"}).status_code == 403
    chosen = {"action": "suspend", "_selected_action": [user.pk], "confirmed": "yes", "told": "Spam.", "why": WHY}
    assert staff.post(reverse("admin:accounts_user_changelist"), chosen).status_code == 302
    user.refresh_from_db()
    assert not user.is_active


def test_a_key_is_revoked_and_its_digest_is_not_shown(staff):
    key, secret = make_key_row(make_user(), name="laptop")
    address = reverse("admin:accounts_apikey_changelist")
    shown = staff.get(address).text + staff.get(reverse("admin:accounts_apikey_change", args=[key.pk])).text
    assert key.prefix in shown
    assert secret not in shown
    assert bytes(key.digest).hex() not in shown
    assert "digest" not in shown
    staff.post(address, {"action": "revoke", "_selected_action": [key.pk], "confirmed": "yes", "why": WHY})
    with pytest.raises(KeyRevoked):
        caller_from_bearer(secret)


def test_the_ledger_can_only_be_read(staff):
    user = make_user()
    record = {"model": "small", "tokens_in": 1, "tokens_cached": 0, "tokens_out": 2}
    generation_id = new_id()
    settling.settle(generation_id=generation_id, user_id=user.pk, conversation_id=None, **record)
    assert user.email in staff.get(reverse("admin:accounts_usagerecord_changelist")).text
    assert staff.get(reverse("admin:accounts_usagerecord_add")).status_code == 403
    assert staff.post(reverse("admin:accounts_usagerecord_change", args=[generation_id]), {}).status_code == 403
    assert staff.post(reverse("admin:accounts_usagerecord_delete", args=[generation_id]), {}).status_code == 403


def test_no_session_key_is_shown_to_staff(staff, client):
    staff.post("/accounts/logout/")
    staff.post("/accounts/login/", {"login": "staff@example.com", "password": PASSWORD})
    session_key = client.session.session_key
    listed = staff.get(reverse("admin:usersessions_usersession_changelist"))
    assert listed.status_code == 200
    assert session_key not in listed.text
    assert staff.get(reverse("admin:usersessions_usersession_changelist") + "?q=staff").status_code == 200


def test_the_admin_signs_in_on_the_products_own_page(client):
    response = client.get("/admin/", follow=True)
    assert response.redirect_chain[-1][0].startswith("/accounts/login/")


def test_the_admin_is_closed_to_whoever_is_no_staff(client):
    client.force_login(make_user())
    way = [address for address, _ in client.get("/admin/", follow=True).redirect_chain]
    assert way[-1] == "/"
    assert client.get(reverse("admin:accounts_user_changelist")).status_code == 302


def test_a_superuser_made_at_the_command_line_can_sign_in_at_once(client, settings):
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    User.objects.create_superuser("root@example.com", PASSWORD)
    response = client.post("/accounts/login/?next=/admin/", {"login": "root@example.com", "password": PASSWORD})
    assert (response.status_code, response["Location"]) == (302, "/admin/")
