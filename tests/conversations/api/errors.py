"""What every error of the API looks like."""


def error_of(response, status, code):
    """Return the error, which must have the one shape and nothing beside it."""
    assert response.status_code == status, response.text
    assert response["Content-Type"].startswith("application/json")
    assert response["X-Request-ID"]
    body = response.json()
    assert set(body) == {"error"}
    error = body["error"]
    assert {"type", "code", "message"} <= set(error) <= {"type", "code", "message", "param", "details"}
    assert error["code"] == code, error
    assert error["message"]
    return error
