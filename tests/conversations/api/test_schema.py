"""The OpenAPI schema: valid, complete, and true of the running site; its page works under the site's policy."""

import re

import pytest
import pytest_asyncio
import schemathesis
import yaml
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.urls import URLResolver, get_resolver
from hypothesis import HealthCheck, Phase, given, settings
from playwright.async_api import async_playwright
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from accounts.models import User
from conversations.models import Export, Import
from tests.accounts.billing.making import make_invoice
from tests.accounts.factories import make_key, make_user

METHODS = ("get", "post", "put", "patch", "delete")
UNDESCRIBED = {"schema/", "docs/"}
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]


@pytest.fixture
def schema(client):
    response = client.get("/v1/schema/")
    assert (response.status_code, response["Content-Type"]) == (200, "application/json")
    return response.json()


def operations(schema):
    return [
        (f"{method.upper()} {path}", operation)
        for path, item in schema["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    ]


def test_the_schema_is_valid_and_made_without_a_warning(tmp_path):
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "schema.yaml"))


@pytest.mark.parametrize("asked", [{"headers": {"Accept": "application/yaml"}}, {"query_params": {"format": "yaml"}}])
def test_the_schema_is_to_be_had_as_yaml_too(client, schema, asked):
    assert yaml.safe_load(client.get("/v1/schema/", **asked).text)["paths"].keys() == schema["paths"].keys()


def test_every_address_is_described(schema):
    described = {re.sub(r"{\w+}", "{}", path.removeprefix("/v1/")) for path in schema["paths"]}
    included = [
        found for found in get_resolver().url_patterns if isinstance(found, URLResolver) and str(found.pattern) == "v1/"
    ]
    routed = {re.sub(r"<\w+:\w+>", "{}", str(each.pattern)) for found in included for each in found.url_patterns}
    assert described == routed - UNDESCRIBED
    assert {"conversations/{}/messages", "generations/{}/stream", "api-keys/{}"} <= described


def test_every_operation_says_who_may_call_and_what_may_go_wrong(schema):
    for name, operation in operations(schema):
        assert {"apiKey", "accessToken", "session"} == {way for each in operation["security"] for way in each}, name
        assert {"401", "403", "500", "503"} <= operation["responses"].keys(), name
        if "{" in name:
            assert "404" in operation["responses"], name
        if "requestBody" in operation:
            assert {"400", "413", "415", "422"} <= operation["responses"].keys(), name
        for status, response in operation["responses"].items():
            assert "X-Request-ID" in response["headers"], name
            if status >= "400":
                assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}
        assert operation["description"], name


def test_the_stream_is_described(schema):
    for path in (
        "/v1/conversations/{conversation_id}/messages",
        "/v1/messages/{message_id}/regenerate",
        "/v1/messages/{message_id}/continue",
    ):
        answer = schema["paths"][path]["post"]["responses"]["200"]
        assert answer["content"].keys() == {"text/event-stream", "application/json"}
        assert "x-ratelimit-remaining-requests" in answer["headers"]
        for event in ("start", "queued", "token", "notice", "error", "done"):
            assert f"`{event}`" in answer["description"]


def test_no_body_may_have_unknown_fields(schema):
    bodies = [each for name, each in schema["components"]["schemas"].items() if name.endswith("Request")]
    assert len(bodies) >= 6
    assert all(body["additionalProperties"] is False for body in bodies)


@pytest_asyncio.fixture
async def page():
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield await browser.new_page()
        await browser.close()


@pytest.mark.browser
async def test_the_schemas_page_shows_it_and_its_console_is_clean(site, page, tmp_path):
    complaints = []
    page.on("console", lambda message: message.type in ("error", "warning") and complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(request.url))
    page.on("response", lambda response: response.status >= 400 and complaints.append(response.url))
    response = await page.goto(f"{site.url}/v1/docs/")
    assert "unsafe-inline" not in response.headers["content-security-policy"]
    await page.wait_for_selector("#operations-Messages-send_message")
    await page.click("#operations-Messages-send_message button.opblock-summary-control")
    await page.wait_for_selector("#operations-Messages-send_message .responses-table")
    await page.screenshot(path=tmp_path / "docs.png", full_page=True)
    assert complaints == []


@pytest_asyncio.fixture
async def alices_ids(alice):
    """What the addresses name: all of it is there."""
    conversation_id = await alice.conversation(title="Fuzzed")
    start = (await alice.send(conversation_id, "Hello"))[0].data
    _, memory = await alice.call("POST", "/v1/memories", {"content": "I am vegan"})
    ids = {name: start[name] for name in ("conversation_id", "message_id", "generation_id")}
    return ids | {"memory_id": memory["memory_id"]} | await sync_to_async(_rows_of)()


def _rows_of():
    alice = User.objects.get(email="alice@example.com")
    return {
        "export_id": Export.objects.create(user=alice).pk,
        "import_id": Import.objects.create(user=alice).pk,
        "invoice_id": make_invoice(alice).pk,
    }


@pytest.fixture
def secret_for(alice_secret):
    """Whose key calls an operation: the account that is erased is not Alice's, whom the others call as."""
    secrets = {"erase_account": make_key(make_user())}
    return lambda operation: secrets.get(operation, alice_secret)


def test_the_running_site_does_what_the_schema_says(site, secret_for, alices_ids):
    fuzzed = schemathesis.openapi.from_url(f"{site.url}/v1/schema/")
    operations = [each.ok() for each in fuzzed.get_all_operations()]
    assert len(operations) >= 16
    for operation in operations:

        @given(case=operation.as_strategy())
        @settings(
            max_examples=15, deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        def call(case):
            if case.method != "DELETE":
                case.path_parameters.update((name, alices_ids[name]) for name in case.path_parameters)
            secret = secret_for(case.operation.definition.raw["operationId"])
            case.call_and_validate(headers={"Authorization": f"Bearer {secret}"}, timeout=20, checks=CHECKS)

        call()
