"""Every error below `/v1` has the one shape, wherever in the stack it arises, and tells nothing internal."""

import pytest
from django.test import Client

from tests.accounts.factories import PASSWORD, bearer, make_key, make_user
from tests.conversations.api.broken_addresses import SECRET
from tests.conversations.api.errors import error_of
from tests.running_site import RunningSite


@pytest.fixture(params=[True, False], ids=["DEBUG", "production"])
def debug(request, settings):
    settings.DEBUG = request.param
    settings.DEBUG_PROPAGATE_EXCEPTIONS = False


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/",
        "/v1/none-such",
        "/v1/conversations/",
        "/v1/models/",
        "/v1/models/x",
        "/v1/../v1/models",
        "/v1//models",
        "/v1/%00",
        "/v1/%ff",
        "/v1/" + "x" * 9000,
        "/v1/conversations.json",
        "/v1/schema",
        "/v1/docs",
    ],
    ids=lambda path: path[:30],
)
def test_an_unknown_address_is_not_found(debug, db, path):
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
        error = error_of(client.generic(method, path, "{}", "application/json"), 404, "not_found")
        assert error["type"] == "not_found_error"


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("/v1/conversations", "GET, POST, HEAD, OPTIONS"),
        ("/v1/conversations/{}", "GET, PATCH, DELETE, HEAD, OPTIONS"),
        ("/v1/conversations/{}/messages", "GET, POST, HEAD, OPTIONS"),
        ("/v1/messages/{}/regenerate", "POST, OPTIONS"),
        ("/v1/generations/{}", "GET, HEAD, OPTIONS"),
        ("/v1/generations/{}/stream", "GET, HEAD, OPTIONS"),
        ("/v1/generations/{}/cancel", "POST, OPTIONS"),
        ("/v1/models", "GET, HEAD, OPTIONS"),
        ("/v1/limits", "GET, HEAD, OPTIONS"),
        ("/v1/api-keys", "GET, POST, HEAD, OPTIONS"),
        ("/v1/api-keys/{}", "DELETE, OPTIONS"),
        ("/v1/schema/", "GET, HEAD, OPTIONS"),
        ("/v1/docs/", "GET, HEAD, OPTIONS"),
    ],
)
def test_a_method_that_does_nothing_is_refused_with_those_that_do(dora, address, allowed):
    path = address.format(dora.conversation())
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"} - set(allowed.split(", ")):
        response = dora.call(method, path)
        error_of(response, 405, "method_not_allowed")
        assert response["Allow"] == allowed


@pytest.mark.parametrize("path", ["/v1/conversations", "/v1/models", "/v1/limits", "/v1/api-keys"])
def test_head_answers_as_get_without_a_body(dora, path):
    response = dora.call("HEAD", path)
    assert (response.status_code, response.content) == (200, b"")


@pytest.mark.parametrize("kind", ["plain", "rest", "async"])
@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("fault", 500, "internal_error"),
        ("suspicious", 400, "malformed_request"),
        ("large", 413, "content_too_long"),
        ("forbidden", 403, "forbidden"),
        ("database", 503, "overloaded"),
        ("domain", 404, "not_found"),
    ],
)
def test_whatever_a_view_raises_is_told_in_the_one_shape(debug, db, settings, kind, name, status, code):
    settings.ROOT_URLCONF = "tests.conversations.api.broken_addresses"
    response = Client(raise_request_exception=False).get(f"/v1/{kind}/{name}")
    error_of(response, status, code)
    assert SECRET not in response.text
    assert "Traceback" not in response.text
    assert ("Retry-After" in response) == (status == 503)


def test_a_page_that_refuses_is_replaced(debug, db, settings, client):
    settings.ROOT_URLCONF = "tests.conversations.api.broken_addresses"
    response = client.get("/v1/forbidding")
    error_of(response, 403, "forbidden")
    assert SECRET not in response.text


def test_an_error_that_is_json_already_is_kept(debug, db, settings, client):
    settings.ROOT_URLCONF = "tests.conversations.api.broken_addresses"
    response = client.get("/v1/explaining")
    assert (response.status_code, response.json()["error"]["code"]) == (418, "c")


def test_a_host_that_is_not_this_sites_is_refused(debug, db, client):
    error_of(client.get("/v1/models", headers={"Host": "evil.example"}), 400, "malformed_request")


def test_a_page_keeps_its_own_errors(db, client):
    assert client.get("/none-such")["Content-Type"].startswith("text/html")


def test_a_session_without_its_token_may_read_but_not_write(db):
    make_user("eve@example.com", password=PASSWORD)
    client = Client(enforce_csrf_checks=True)
    assert client.login(email="eve@example.com", password=PASSWORD)
    assert client.get("/v1/conversations").status_code == 200
    for content_type in ("application/json", "application/x-www-form-urlencoded", "text/plain"):
        error_of(client.post("/v1/conversations", "{}", content_type=content_type), 403, "csrf_failed")
    client.get("/")
    token = client.cookies["csrftoken"].value
    made = client.post("/v1/conversations", "{}", content_type="application/json", headers={"X-CSRFToken": token})
    assert made.status_code == 201


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer ", "Basic YTpi", "Token x", "Bearer a b"])
def test_without_a_credential_nothing_is_told(dora, authorization):
    path = f"/v1/conversations/{dora.conversation()}"
    for method in ("GET", "PATCH", "DELETE", "OPTIONS"):
        response = dora.call(method, path, "{not json", Authorization=authorization)
        error = error_of(response, 401, "not_authenticated")
        assert error["type"] == "authentication_error"
        assert response["WWW-Authenticate"] == "Bearer"


def test_a_suspended_account_is_told_so(db, client):
    secret = make_key(make_user("sam@example.com", is_active=False))
    error = error_of(client.get("/v1/models", headers=bearer(secret)), 403, "account_suspended")
    assert error["type"] == "permission_error"


def test_messages_are_in_one_language(dora):
    sentences = {
        dora.post("/v1/conversations", {"title": "t" * 201}, Accept_Language=language).json()["error"]["message"]
        for language in ("en", "de", "ja")
    }
    assert sentences == {"title: Ensure this field has no more than 200 characters."}


@pytest.mark.parametrize("debug", ["true", "false"])
async def test_while_the_database_is_away_a_call_may_be_made_again(http, db, debug):
    away = {
        "DATABASE_URL": "postgresql://nobody:Wq8-nothing-there@127.0.0.1:1/none",
        "DEBUG": debug,
        "SECRET_KEY": "s" * 50,
        "ALLOWED_HOSTS": "127.0.0.1",
    }
    site = RunningSite([], away)
    try:
        site.start_web()
        stream = "/v1/generations/01980000-0000-7000-8000-000000000000/stream"
        for method, address in (("GET", "/v1/models"), ("POST", "/v1/conversations"), ("GET", stream)):
            async with http.request(
                method, site.url + address, json={}, headers={"Authorization": "Bearer ck_" + "A" * 43}
            ) as response:
                assert response.status == 503
                assert int(response.headers["Retry-After"]) >= 1
                assert response.headers["X-Request-ID"]
                assert (await response.json())["error"]["code"] == "overloaded"
    finally:
        site.stop()
