"""Which scope a key needs for each route. A route that is not in this table fails here."""

import re
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import get_resolver

from accounts.models import APIKey
from accounts.models.api_key import SCOPES
from tests.accounts.factories import bearer, make_key, make_user

pytestmark = pytest.mark.django_db(transaction=True)

SCOPE_OF = {
    ("GET", "/v1/account"): "account",
    ("DELETE", "/v1/account"): "account",
    ("GET", "/v1/api-keys"): "account",
    ("POST", "/v1/api-keys"): "account",
    ("DELETE", "/v1/api-keys/<uuid:api_key_id>"): "account",
    ("GET", "/v1/invoices"): "account",
    ("GET", "/v1/invoices/<uuid:invoice_id>"): "account",
    ("GET", "/v1/invoices/<uuid:invoice_id>/pdf"): "account",
    ("GET", "/v1/limits"): "read",
    ("GET", "/v1/usage"): "read",
    ("GET", "/v1/conversations"): "read",
    ("POST", "/v1/conversations"): "write",
    ("GET", "/v1/conversations/<uuid:conversation_id>"): "read",
    ("PATCH", "/v1/conversations/<uuid:conversation_id>"): "write",
    ("DELETE", "/v1/conversations/<uuid:conversation_id>"): "write",
    ("GET", "/v1/conversations/<uuid:conversation_id>/context"): "read",
    ("POST", "/v1/conversations/<uuid:conversation_id>/fork"): "write",
    ("GET", "/v1/conversations/<uuid:conversation_id>/messages"): "read",
    ("POST", "/v1/conversations/<uuid:conversation_id>/messages"): "chat",
    ("POST", "/v1/messages/<uuid:message_id>/continue"): "chat",
    ("POST", "/v1/messages/<uuid:message_id>/regenerate"): "chat",
    ("GET", "/v1/generations/<uuid:generation_id>"): "read",
    ("GET", "/v1/generations/<uuid:generation_id>/context"): "read",
    ("GET", "/v1/generations/<uuid:generation_id>/stream"): "read",
    ("POST", "/v1/generations/<uuid:generation_id>/cancel"): "chat",
    ("GET", "/v1/memories"): "read",
    ("POST", "/v1/memories"): "write",
    ("PATCH", "/v1/memories/<uuid:memory_id>"): "write",
    ("DELETE", "/v1/memories/<uuid:memory_id>"): "write",
    ("GET", "/v1/preferences"): "read",
    ("PATCH", "/v1/preferences"): "write",
    ("GET", "/v1/exports"): "account",
    ("POST", "/v1/exports"): "account",
    ("GET", "/v1/exports/<uuid:export_id>"): "account",
    ("GET", "/v1/exports/<uuid:export_id>/file"): "account",
    ("POST", "/v1/imports"): "account",
    ("GET", "/v1/imports/<uuid:import_id>"): "account",
    ("GET", "/v1/models"): "read",
}
OPEN = {"/v1/schema/", "/v1/docs/", "/v1/stripe/webhook"}
"""What needs no key: it says nothing of anybody, or carries a signature of its own."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def routes(patterns, prefix="/"):
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from routes(pattern.url_patterns, route)
        elif route.startswith("/v1/"):
            yield route, pattern.callback


def calls():
    for route, view in routes(get_resolver().url_patterns):
        if route in OPEN:
            continue
        shown = getattr(view, "cls", None)
        assert shown is not None, f"{route} is no view of the API"
        yield from ((method, route) for method in METHODS if hasattr(shown, method.lower()))


def answer_to(method, route, *scopes):
    user = make_user()
    key = make_key(user, scopes or ["chat"])
    if not scopes:
        APIKey.objects.filter(user=user).update(scopes=[])
    path = re.sub(r"<uuid:\w+>", lambda _: str(uuid4()), route)
    response = Client().generic(method, path, "{}", content_type="application/json", headers=bearer(key))
    code = None
    if response.status_code >= 400:
        code = response.json()["error"]["code"]
    return response.status_code, code


def test_the_table_has_every_route_and_no_other():
    assert set(calls()) == set(SCOPE_OF)


@pytest.mark.parametrize(("method", "route"), SCOPE_OF, ids=[f"{method} {route}" for method, route in SCOPE_OF])
def test_a_key_with_its_scope_alone_is_let_in_and_every_other_is_not(method, route):
    needed = SCOPE_OF[method, route]
    assert answer_to(method, route) == (403, "scope_missing")
    for scope in SCOPES:
        status, code = answer_to(method, route, scope)
        if scope == needed:
            assert code not in ("scope_missing", "not_authenticated"), (status, code)
        else:
            assert (status, code) == (403, "scope_missing"), scope
