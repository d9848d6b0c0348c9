"""A program's request takes the short way through Django, and is answered as on the long one."""

import json
from uuid import uuid4

import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.handlers.asgi import ASGIHandler

from accounts.api_keys import make_key
from chatsite.programs import ProgramHandler, is_of_a_program
from foundation.database import in_database
from tests.accounts.factories import make_user

OF_BROWSERS = {"content-language", "vary"}
"""Headers that say which language was chosen for a page."""


def scope(path, *, method="GET", host="testserver", **headers):
    given = {"host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
    }


async def answer_of(handler, asked, body=b""):
    # By `handle`: a thread for each request, as `ASGIHandler` has them, would leave a connection behind without a pool.
    communicator = ApplicationCommunicator(handler.handle, asked)
    await communicator.send_input({"type": "http.request", "body": body})
    start = await communicator.receive_output(30)
    whole = b""
    while True:
        part = await communicator.receive_output(30)
        whole += part["body"]
        if not part.get("more_body"):
            break
    await communicator.wait(30)
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, whole


@pytest.fixture
def secret(transactional_db):
    return make_key(make_user("alice@example.com"), "key", ["read", "write"])[1]


def asked_of_the_api(secret):
    key = {"authorization": f"Bearer {secret}"}
    nobody = {"authorization": f"Bearer {secret[:-1]}_"}
    json_body = {"content_type": "application/json"}
    return {
        "a list": (scope("/v1/conversations", **key), b""),
        "something made": (scope("/v1/conversations", method="POST", **key, **json_body), b'{"title": "New"}'),
        "something that is not there": (scope(f"/v1/conversations/{uuid4()}", **key), b""),
        "an address that is not there": (scope("/v1/nothing", **key), b""),
        "a method that is not there": (scope("/v1/models", method="PUT", **key), b""),
        "a body that is no JSON": (scope("/v1/conversations", method="POST", **key, **json_body), b"{"),
        "a key that is not there": (scope("/v1/conversations", **nobody), b""),
        "an empty credential": (scope("/v1/conversations", authorization="Bearer"), b""),
        "a scope that is missing": (scope("/v1/keys", **key), b""),
        "a host that is not ours": (scope("/v1/conversations", host="elsewhere.example", **key), b""),
        "a probe": (scope("/healthz"), b""),
        "the numbers": (scope("/metrics"), b""),
    }


@pytest.mark.parametrize("case", asked_of_the_api("ck_" + "x" * 43))
async def test_both_ways_answer_alike(case, secret):
    asked, body = asked_of_the_api(secret)[case]
    assert is_of_a_program(asked)
    short_status, short_headers, short_body = await answer_of(ProgramHandler(), asked, body)
    long_status, long_headers, long_body = await answer_of(ASGIHandler(), asked, body)
    assert short_status == long_status
    assert set(short_headers) == set(long_headers) - OF_BROWSERS
    own = {"x-request-id", "content-length", "expires"}  # expires: the second it was made in
    assert {n: v for n, v in short_headers.items() if n not in own} == {
        n: v for n, v in long_headers.items() if n not in own | OF_BROWSERS
    }
    if short_headers["content-type"] == "application/json":
        assert json.loads(short_body).keys() == json.loads(long_body).keys()


@pytest.mark.parametrize(
    "asked",
    [
        scope("/v1/conversations"),
        scope("/v1/conversations", cookie="sessionid=x"),
        scope("/v1/conversations", authorization="Basic eDp5"),
        scope("/v1/conversations", authorization="Bearerx y"),
        scope("/c/new/messages", method="POST", authorization="Bearer x"),
        scope("/_allauth/app/v1/auth/session", authorization="Bearer x"),
        scope("/admin/", authorization="Bearer x"),
    ],
)
def test_whatever_may_have_a_session_takes_the_long_way(asked):
    assert not is_of_a_program(asked)


def test_of_several_credentials_the_first_decides_as_in_authentication():
    asked = scope("/v1/conversations", authorization="Basic eDp5")
    asked["headers"].append((b"authorization", b"Bearer x"))
    assert not is_of_a_program(asked)


async def test_a_cookie_beside_a_bearer_credential_counts_for_nothing(secret):
    asked = scope("/v1/conversations", authorization=f"Bearer {secret[:-1]}_", cookie="sessionid=x; csrftoken=y")
    assert (await answer_of(ProgramHandler(), asked))[0] == 401


async def test_a_view_gives_its_connection_back(secret):
    asked = scope("/v1/conversations", authorization=f"Bearer {secret}")
    for _ in range(20):
        assert (await answer_of(ProgramHandler(), asked))[0] == 200
    assert await in_database(lambda: True)
