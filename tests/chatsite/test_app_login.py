"""What an app sends to sign in is read strictly: nothing that it holds makes the site fail."""

import pytest

ADDRESSES = ["/_allauth/app/v1/auth/login", "/_allauth/app/v1/auth/signup", "/_allauth/app/v1/tokens/refresh"]
BODIES = {
    "no JSON": b"{",
    "no text": b"\xff",
    "a lone surrogate": b'{"email": "a@example.com", "password": "\\ud800 horse battery", "refresh_token": "\\ud800"}',
    "a name with a lone surrogate": b'{"\\ud800": 1}',
    "nesting without end": b"[" * 100_000,
    "NaN": b'{"email": NaN}',
}


@pytest.mark.django_db
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_is_no_json_is_refused(client, address, body):
    response = client.post(address, body, content_type="application/json")
    assert (response.status_code, response.json()) == (400, {"status": 400})


@pytest.mark.django_db
@pytest.mark.parametrize("address", ADDRESSES)
def test_a_body_that_is_too_long_is_refused(client, settings, address):
    body = b'{"email": "%s"}' % (b"x" * settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    response = client.post(address, body, content_type="application/json")
    assert (response.status_code, response.json()) == (413, {"status": 413})


@pytest.mark.django_db
@pytest.mark.parametrize("value", [None, 5, [], {}, ["a"], True])
def test_values_of_another_kind_are_faults_of_the_form(client, value):
    body = {"email": value, "password": value}
    assert client.post(ADDRESSES[0], body, content_type="application/json").status_code in (400, 401)
