"""A caller who needs no running site."""

import json

import pytest

from tests.accounts.factories import bearer, make_key, make_user


class Caller:
    """Calls the API through Django's test client, with one key."""

    def __init__(self, client, user):
        self.client = client
        self.client.raise_request_exception = False
        self.user = user
        self.secret = make_key(user)
        self.headers = bearer(self.secret)

    def call(self, method, path, body=None, *, content_type="application/json", **headers):
        """Send a body as it is where it is bytes or text, anything else as JSON."""
        content = body if isinstance(body, bytes | str) else b"" if body is None else json.dumps(body)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(method, path, content, content_type, headers={**self.headers, **headers})

    def get(self, path, **headers):
        return self.call("GET", path, **headers)

    def post(self, path, body=None, **kwargs):
        return self.call("POST", path, body, **kwargs)

    def patch(self, path, body=None, **kwargs):
        return self.call("PATCH", path, body, **kwargs)

    def conversation(self, **fields):
        response = self.post("/v1/conversations", fields)
        assert response.status_code == 201, response.text
        return response.json()["conversation_id"]


@pytest.fixture
def dora(client, db):
    """A customer with a key of every scope."""
    return Caller(client, make_user("dora@example.com"))
