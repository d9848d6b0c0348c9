"""What can go wrong with a request, with TGI's codes, texts and statuses.

RequestError
├── InvalidInputError         validation             422
├── OverloadedError           overloaded             429
├── GenerationError           generation             424
├── IncompleteError           incomplete_generation  500
├── TemplateError             template_error         422
├── ToolError                 tool_error             422
└── CompletionsError          (per case)             422
RejectedBodyError             plain text, before a request exists
"""


class RequestError(Exception):
    """A request that was read but cannot be answered. `str()` is the text that the client gets."""

    code = ""
    status = 500
    failure_label = "generation"
    prefix = ""

    def __init__(self, detail: str) -> None:
        super().__init__(self.prefix + detail)

    @property
    def stream_code(self) -> str:
        """The code that a frame of a stream carries."""
        return self.code

    @property
    def stream_text(self) -> str:
        return str(self)


class InvalidInputError(RequestError):
    """A value that the rules do not allow."""

    code = "validation"
    status = 422
    failure_label = "validation"
    prefix = "Input validation error: "


class OverloadedError(RequestError):
    """All permits are in use."""

    code = "overloaded"
    status = 429
    failure_label = "overloaded"

    def __init__(self) -> None:
        super().__init__("Model is overloaded")


class GenerationError(RequestError):
    """The engine refused or failed."""

    code = "generation"
    status = 424
    prefix = "Request failed during generation: "


class IncompleteError(RequestError):
    """The engine's stream ended without a last token."""

    code = "incomplete_generation"
    status = 500
    failure_label = "incomplete"

    def __init__(self) -> None:
        super().__init__("Incomplete generation")

    @property
    def stream_code(self) -> str:
        return "incomplete_generation_stream"

    @property
    def stream_text(self) -> str:
        return "Incomplete generation stream"


class TemplateError(RequestError):
    """The chat template refused the messages."""

    code = "template_error"
    status = 422
    failure_label = "template"
    prefix = "Template error: "


class ToolError(RequestError):
    """Tools that do not exist, or an answer that is no call."""

    code = "tool_error"
    status = 422
    failure_label = "validation"
    prefix = "Tool error: "


class CompletionsError(RequestError):
    """What `/v1/completions` does not do. Its code is TGI's own phrase."""

    status = 422
    failure_label = "validation"

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class RejectedBodyError(Exception):
    """A body that is no request at all: answered in plain text, as TGI's web framework does."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
