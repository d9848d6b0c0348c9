"""The sign-up form sent twice at once, as by a double click."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from django.test import Client

from accounts.models import User

FORM = {"email": "double@example.com", "password1": "correct-horse-battery-7"}


def sign_up(form):
    try:
        client = Client()
        response = client.post("/accounts/signup/", form)
        return response.status_code, "_auth_user_id" in client.session
    finally:
        connections.close_all()


@pytest.mark.django_db(transaction=True)
def test_a_double_click_on_sign_up_makes_one_account_and_signs_in():
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(sign_up, [FORM] * 4))
    assert User.objects.filter(email="double@example.com").count() == 1
    assert all(status < 500 for status, _ in answers)
    assert (302, True) in answers


@pytest.mark.django_db(transaction=True)
def test_two_people_who_want_the_same_address_at_once_get_one_account():
    forms = [{**FORM, "password1": f"another-horse-battery-{n}"} for n in range(4)]
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(sign_up, forms))
    assert User.objects.filter(email="double@example.com").count() == 1
    assert all(status < 500 for status, _ in answers)
    assert sum(is_signed_in for _, is_signed_in in answers) == 1
