"""What a body may be: JSON, in UTF-8, of a bounded size, with the fields that are documented."""

import json

import pytest
from django.conf import settings

from conversations.models import Conversation
from tests.conversations.api.errors import error_of


def post(dora, body, **kwargs):
    return dora.post("/v1/conversations", body, **kwargs)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"}",
        b"{'title': 'x'}",
        b'{"title": "x",}',
        b'{"title": "x"} {}',
        b"title=x",
        b"\x00",
        b'{"title": "\n"}',
        b'{"title": NaN}',
        b'{"title": Infinity}',
        b'{"title": -Infinity}',
        b'{"title": 1e999}',
        b'{"title": 01}',
        b'\xef\xbb\xbf{"title": "x"}',
        '{"title": "x"}'.encode("utf-16"),
        '{"title": "é"}'.encode("latin-1"),
        b'{"title": "\xed\xa0\x80"}',
        b'{"title": "\\u12"}',
        b'{"title": "\\x41"}',
        b"[" * 100_000,
        b'{"title": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"a":' * 50_000,
        b"1" * 10_000 + b".",
        b"// x\n{}",
    ],
    ids=lambda body: repr(body[:30]),
)
def test_a_body_that_is_no_json_is_refused(dora, body):
    error = error_of(post(dora, body), 400, "malformed_json")
    assert error["type"] == "invalid_request_error"


def test_a_repeated_key_counts_the_last_time(dora):
    assert post(dora, '{"title": "first", "title": "last"}').json()["title"] == "last"


@pytest.mark.parametrize("body", ['{"title": 1' + "0" * 5_000 + "}", '{"title": 18446744073709551616}'])
def test_a_huge_number_is_no_title(dora, body):
    response = post(dora, body)
    assert response.status_code in (400, 422)
    error_of(response, response.status_code, response.json()["error"]["code"])


@pytest.mark.parametrize("escape", ["\\u0000", "\\ud800", "\\udfff", "\\ude00\\ud83d", "a\\ud83d"])
@pytest.mark.parametrize("field", ["title", "instructions"])
def test_half_characters_and_nul_are_refused_by_the_field(dora, field, escape):
    error = error_of(post(dora, f'{{"{field}": "{escape}"}}'), 422, "invalid_request")
    assert error["param"] == field
    assert not Conversation.objects.exists()


@pytest.mark.parametrize(
    "body", ['{"\\ud800": 1}', '{"a": {"\\ud800": 1}}', '["\\ud800"]', '"\\ud800"', '{"\\u0000": 1}']
)
def test_half_characters_in_names_are_refused(dora, body):
    error_of(post(dora, body), 422, "invalid_request")


def test_half_characters_in_a_message_are_refused_by_its_content(dora):
    path = f"/v1/conversations/{dora.conversation()}/messages"
    for escape in ("\\ud800", "\\u0000"):
        error = error_of(dora.post(path, f'{{"content": "a{escape}b"}}'), 422, "invalid_request")
        assert error["param"] == "content"


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
        "application/vnd.api+json",
        "text/json",
        "application/json; charset=utf-16",
        "application/json; charset=latin-1",
        "application/json; charset=none-such",
        "application/json, text/plain",
        "/",
        ";",
    ],
    ids=lambda content_type: content_type[:40],
)
@pytest.mark.parametrize("address", ["/v1/conversations", "/v1/conversations/{}/messages", "/v1/api-keys"])
def test_a_body_that_is_not_declared_as_json_is_refused(dora, address, content_type):
    response = dora.post(address.format(dora.conversation()), {"title": "x"}, content_type=content_type)
    assert "application/json" in error_of(response, 415, "unsupported_media_type")["message"]


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "APPLICATION/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"'],
)
def test_json_may_be_declared_in_each_of_its_ways(dora, content_type):
    assert post(dora, '{"title": "ü"}'.encode(), content_type=content_type).json()["title"] == "ü"


@pytest.mark.parametrize("accept", ["", "*/*", "text/html", "text/event-stream", "application/xml", "x", "a/b;q=0"])
@pytest.mark.parametrize("path", ["/v1/models", "/v1/conversations?format=xml", "/v1/limits"])
def test_the_answer_is_json_whatever_is_accepted(dora, path, accept):
    response = dora.get(path, Accept=accept)
    assert (response.status_code, response["Content-Type"]) == (200, "application/json")


def test_a_body_over_the_limit_is_refused(dora):
    most_bytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    body = json.dumps({"title": "x", "instructions": ""})
    padding = " " * (most_bytes - len(body))
    assert post(dora, body + padding).status_code == 201
    error_of(post(dora, body + padding + " "), 413, "content_too_long")


def test_a_message_over_the_limit_is_refused(dora):
    path = f"/v1/conversations/{dora.conversation()}/messages"
    error = error_of(dora.post(path, {"content": "x" * (settings.MAX_MESSAGE_CHARACTERS + 1)}), 413, "content_too_long")
    most = settings.MAX_MESSAGE_CHARACTERS
    assert error["details"] == {"characters": most + 1, "limit": most, "over": 1}
    assert error["param"] == "content"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"content": None}, "content"),
        ({"content": 5}, "content"),
        ({"content": ""}, "content"),
        ({"content": " \n\t "}, "content"),
        ({"content": ["Hello"]}, "content"),
        ({"model": ""}, "model"),
        ({"model": 5}, "model"),
        ({"stream": "false"}, "stream"),
        ({"stream": 0}, "stream"),
        ({"background": "yes"}, "background"),
        ({"tools": "search"}, "tools"),
        ({"tools": ["none-such"]}, "tools"),
        ({"document_ids": "x"}, "document_ids"),
        ({"document_ids": ["x"]}, "document_ids"),
        ({"document_ids": ["01980000-0000-7000-8000-000000000000"]}, "document_ids"),
        ({"options": []}, "options"),
        ({"options": "hot"}, "options"),
        ({"options": {"max_tokens": 0}}, "options.max_tokens"),
        ({"options": {"max_tokens": -1}}, "options.max_tokens"),
        ({"options": {"max_tokens": "5"}}, "options.max_tokens"),
        ({"options": {"max_tokens": 5.5}}, "options.max_tokens"),
        ({"options": {"max_tokens": True}}, "options.max_tokens"),
        ({"options": {"max_tokens": 10**30}}, "options.max_tokens"),
        ({"options": {"seed": 2**63}}, "options.seed"),
        ({"options": {"seed": -1}}, "options.seed"),
        ({"options": {"temperature": "0.5"}}, "options.temperature"),
        ({"options": {"temperature": True}}, "options.temperature"),
        ({"options": {"temperature": 2.1}}, "options.temperature"),
        ({"options": {"temperature": -0.1}}, "options.temperature"),
        ({"options": {"top_p": 0}}, "options.top_p"),
        ({"options": {"top_p": 1.1}}, "options.top_p"),
        ({"options": {"stop": "x"}}, "options.stop"),
        ({"options": {"stop": [""]}}, "options.stop"),
        ({"options": {"stop": ["a"] * 5}}, "options.stop"),
        ({"options": {"stop": [5]}}, "options.stop"),
    ],
)
def test_a_faulty_message_names_the_field(dora, fields, param):
    path = f"/v1/conversations/{dora.conversation()}/messages"
    error = error_of(dora.post(path, {"content": "Hello", **fields}), 422, "invalid_request")
    assert error["param"] == param
    assert list(error["details"]) == [param.partition(".")[0]]


@pytest.mark.parametrize(
    "name",
    [
        "api_base",
        "base_url",
        "api_key",
        "url",
        "endpoint",
        "headers",
        "extra_headers",
        "extra_body",
        "user",
        "user_id",
        "priority",
        "tier",
        "role",
        "system",
        "messages",
        "status",
        "generation_id",
        "message_id",
        "conversation_id",
        "adapter_id",
        "grammar",
        "logprobs",
        "n",
        "best_of",
        "prompt",
        "timeout",
        "replica",
        "model_version",
        "__class__",
    ],
)
def test_a_privileged_or_unknown_field_is_refused_wherever_it_stands(dora, name):
    path = f"/v1/conversations/{dora.conversation()}/messages"
    for body, param in (({name: "x"}, name), ({"options": {name: "x"}}, f"options.{name}")):
        error = error_of(dora.post(path, {"content": "Hello", **body}), 422, "invalid_request")
        assert error["param"] == param
