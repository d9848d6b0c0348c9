"""How the twin refuses: TGI's JSON errors, and the plain-text ones of its body extractor."""

from dataclasses import dataclass

STATUS_OF = {
    "validation": 422,
    "overloaded": 429,
    "generation": 424,
    "incomplete_generation": 500,
    "incomplete_generation_stream": 500,
    "template_error": 422,
    "missing_template_variable": 422,
    "tool_error": 422,
    "stream_serialization_error": 500,
    "healthcheck": 503,
    "suffix not supported": 422,
    "batch size exceeded": 422,
}

_TEXT_OF = {
    "overloaded": "Model is overloaded",
    "generation": "Request failed during generation: Server error: injected",
    "incomplete_generation": "Incomplete generation",
    "incomplete_generation_stream": "Incomplete generation stream",
    "healthcheck": "unhealthy",
    "stream_serialization_error": "Stream event serialization error",
}


class Unreadable(Exception):
    """A body that does not have the route's shape: an answer in plain text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


@dataclass(frozen=True)
class Rejected(Exception):
    """A request that is understood and refused: an answer in JSON, or an error frame."""

    error_type: str
    message: str

    @property
    def status(self) -> int:
        """The status where no stream has begun."""
        return STATUS_OF.get(self.error_type, 500)


def rejection(error_type: str, message: str | None = None) -> Rejected:
    """The rejection with the words TGI has for it."""
    return Rejected(error_type, message or _TEXT_OF.get(error_type, f"injected {error_type}"))


def invalid(detail: str) -> Rejected:
    """A `validation` error."""
    return Rejected("validation", f"Input validation error: {detail}")
