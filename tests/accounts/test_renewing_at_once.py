"""A refresh token sent many times at once, as by whoever has stolen it, is used once and ends the sign-in."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from django.test import Client

from tests.accounts.factories import PASSWORD, bearer, make_user

REFRESH = "/_allauth/app/v1/tokens/refresh"


def post(address, body):
    try:
        return Client().post(address, body, content_type="application/json")
    finally:
        connections.close_all()


@pytest.mark.django_db(transaction=True)
def test_of_many_renewals_with_one_refresh_token_one_succeeds_and_the_sign_in_ends():
    user = make_user("alice@example.com", password=PASSWORD)
    signed_in = post("/_allauth/app/v1/auth/login", {"email": user.email, "password": PASSWORD})
    body = {"refresh_token": signed_in.json()["meta"]["refresh_token"]}
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: post(REFRESH, body), range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 7
    renewed = next(answer.json()["data"] for answer in answers if answer.status_code == 200)
    assert post(REFRESH, {"refresh_token": renewed["refresh_token"]}).status_code == 400
    assert Client().get("/v1/limits", headers=bearer(renewed["access_token"])).status_code == 401


@pytest.mark.django_db(transaction=True)
def test_an_old_refresh_token_used_again_ends_the_sign_in_of_both():
    user = make_user("alice@example.com", password=PASSWORD)
    signed_in = post("/_allauth/app/v1/auth/login", {"email": user.email, "password": PASSWORD}).json()["meta"]
    old = {"refresh_token": signed_in["refresh_token"]}
    renewed = post(REFRESH, old).json()["data"]
    assert Client().get("/v1/limits", headers=bearer(renewed["access_token"])).status_code == 200
    assert post(REFRESH, old).status_code == 400
    assert Client().get("/v1/limits", headers=bearer(renewed["access_token"])).status_code == 401
    assert post(REFRESH, {"refresh_token": renewed["refresh_token"]}).status_code == 400


@pytest.mark.django_db(transaction=True)
def test_a_forged_refresh_token_ends_nothing():
    user = make_user("alice@example.com", password=PASSWORD)
    signed_in = post("/_allauth/app/v1/auth/login", {"email": user.email, "password": PASSWORD}).json()["meta"]
    assert post(REFRESH, {"refresh_token": signed_in["refresh_token"][:-4] + "AAAA"}).status_code == 400
    assert Client().get("/v1/limits", headers=bearer(signed_in["access_token"])).status_code == 200
