"""An id has one spelling. Any other finds nothing, whoever asks; nothing that looks like SQL reaches the database."""

from uuid import uuid4

import pytest

from tests.conversations.api.errors import error_of

SPELLINGS = {
    "upper case": str.upper,
    "no hyphens": lambda spelled: spelled.replace("-", ""),
    "braces": lambda spelled: f"{{{spelled}}}",
    "a URN": lambda spelled: f"urn:uuid:{spelled}",
    "underscores": lambda spelled: spelled.replace("-", "_"),
    "a leading space": lambda spelled: f"%20{spelled}",
    "a trailing newline": lambda spelled: f"{spelled}%0A",
    "a trailing NUL": lambda spelled: f"{spelled}%00",
    "full-width digits": lambda spelled: spelled.replace("0", "%EF%BC%90"),
    "an encoded hyphen twice": lambda spelled: spelled.replace("-", "%252D"),
    "a path that climbs": lambda spelled: f"x/..%2f{spelled}",
}
NOTHING = ["1", "-1", "null", "undefined", "*", "%00", "%ff%fe", "'%20OR%20'1'='1", "1;DROP%20TABLE%20x--", "x" * 5000]
ADDRESSES = [
    "/v1/conversations/{}",
    "/v1/conversations/{}/messages",
    "/v1/generations/{}",
    "/v1/generations/{}/stream",
]


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_another_spelling_of_an_id_finds_nothing(dora, spell):
    spelled = spell(dora.conversation())
    for address in ADDRESSES[:2]:
        error_of(dora.get(address.format(spelled)), 404, "not_found")


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("spelled", NOTHING, ids=lambda spelled: spelled[:20])
def test_what_is_no_id_finds_nothing(dora, address, spelled):
    error_of(dora.get(address.format(spelled)), 404, "not_found")


@pytest.mark.parametrize("spelled", [5, -1, 1e400, 2**128, True, {}, [], "", "x", "' OR 1=1 --", "\x00"])
def test_what_is_no_id_is_refused_in_a_body(dora, spelled):
    body = {"content": "Hello", "parent_id": spelled}
    conversation_id = dora.conversation()
    if spelled == 1e400:
        body = '{"content": "Hello", "parent_id": 1e400}'
        error_of(dora.post(f"/v1/conversations/{conversation_id}/messages", body), 400, "malformed_json")
        return
    error = error_of(dora.post(f"/v1/conversations/{conversation_id}/messages", body), 422, "invalid_request")
    assert error["param"] == "parent_id"


def test_an_id_in_a_body_has_one_spelling_too(dora):
    path = f"/v1/conversations/{dora.conversation()}"
    for spelled in (str(uuid4()).upper(), uuid4().hex, f"{{{uuid4()}}}"):
        error = error_of(dora.patch(path, {"active_message_id": spelled}), 422, "invalid_request")
        assert error["param"] == "active_message_id"


SQL = "'; SELECT pg_sleep(10); --"


@pytest.mark.parametrize("name", ["cursor", "limit", "archived", "branch"])
def test_sql_in_a_parameter_is_only_a_wrong_parameter(dora, name):
    path = "/v1/conversations" if name == "archived" else f"/v1/conversations/{dora.conversation()}/messages"
    error = error_of(dora.client.get(path, {name: SQL}, headers=dora.headers), 422, "invalid_request")
    assert error["param"] == name


@pytest.mark.parametrize("header", ["Idempotency-Key", "Last-Event-ID", "Accept", "X-Request-ID", "User-Agent"])
def test_sql_in_a_header_harms_nothing(dora, header):
    response = dora.call("POST", f"/v1/conversations/{uuid4()}/messages", {"content": "Hello"}, **{header: SQL})
    error_of(response, 404, "not_found")
    assert response["X-Request-ID"] != SQL


@pytest.mark.parametrize("secret", [f"ck_{SQL}", "ck_" + "A" * 43, SQL, "ck_", "", "a.b.c", "ck_\x00", "é" * 43])
def test_sql_in_a_credential_is_only_a_wrong_credential(dora, secret):
    response = dora.get("/v1/models", Authorization=f"Bearer {secret}")
    error = error_of(response, 401, "not_authenticated")
    assert error["type"] == "authentication_error"
    assert response["WWW-Authenticate"] == "Bearer"
    assert "SELECT" not in response.text
