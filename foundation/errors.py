"""The root of every app's exception tree. No HTTP in it: `chatsite/errors.py` gives each code its status."""

from collections.abc import Mapping
from typing import Any, ClassVar


class DomainError(Exception):
    """Something a person can be told. `message` is a sentence to act on; nothing internal is ever in it."""

    code: ClassVar[str] = "internal_error"

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        details: Any = None,
        retry_after_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.details = details
        self.retry_after_seconds = retry_after_seconds
        self.headers = dict(headers or {})
