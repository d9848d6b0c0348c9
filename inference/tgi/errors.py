"""What can go wrong with a model server, and which answer of a server means what.

ModelServerError
├── Unreachable        no connection, or none left before the answer began
├── Overloaded         the server has no room for the request now
├── InvalidRequest     the request itself is wrong; no replica will take it
├── Unauthorized       the server does not accept our key: configuration
├── GenerationFailed   the model raised while it computed
│   └── TemplateFailed the chat template refuses the messages
├── Incomplete         the answer broke off before its proper end
├── Stalled            connected, but silent or without progress for too long
└── Misbehaved         the answer does not follow the protocol
    └── NotOffered     the server has no such route
"""

from collections.abc import Mapping

import orjson

_MESSAGE_CHARACTERS = 300


class ModelServerError(Exception):
    """A model server did not give a whole answer.

    `retryable` says whether the same request may be sent to another replica. `message` has the server's own words;
    `str()` leaves them out, because servers quote prompts in them and message text is never logged.
    """

    code = "model_server_error"
    retryable = True

    def __init__(self, message: str) -> None:
        self.message = message[:_MESSAGE_CHARACTERS]
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.code


class Unreachable(ModelServerError):
    code = "unreachable"


class Overloaded(ModelServerError):
    code = "overloaded"


class InvalidRequest(ModelServerError):
    code = "invalid_request"
    retryable = False


class Unauthorized(ModelServerError):
    code = "unauthorized"


class GenerationFailed(ModelServerError):
    code = "generation_failed"


class TemplateFailed(GenerationFailed):
    code = "template_failed"
    retryable = False


class Incomplete(ModelServerError):
    code = "incomplete"


class Stalled(ModelServerError):
    code = "stalled"


class Misbehaved(ModelServerError):
    code = "misbehaved"


class NotOffered(Misbehaved):
    """Older servers lack routes that newer ones have."""


_BY_TYPE: dict[str, type[ModelServerError]] = {
    "overloaded": Overloaded,
    "validation": InvalidRequest,
    "tool_error": InvalidRequest,
    "template_error": TemplateFailed,
    "missing_template_variable": TemplateFailed,
    "generation": GenerationFailed,
    "incomplete_generation": Incomplete,
    "incomplete_generation_stream": Incomplete,
}

# TGI gives every error frame of a chat stream the status 422, so there only its words tell them apart.
_BY_WORDS: dict[str, type[ModelServerError]] = {
    "Model is overloaded": Overloaded,
    "Input validation error:": InvalidRequest,
    "Tool error:": InvalidRequest,
    "Template error:": TemplateFailed,
    "Request failed during generation:": GenerationFailed,
    "Incomplete generation": Incomplete,
}

_BY_STATUS: dict[int, type[ModelServerError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Unauthorized,
    404: NotOffered,
    405: NotOffered,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    424: GenerationFailed,
    429: Overloaded,
}

_BY_STATUS_OF_JSON: dict[int, type[ModelServerError]] = {**_BY_STATUS, 500: GenerationFailed, 503: Overloaded}


def error_of_frame(frame: Mapping[str, object]) -> ModelServerError | None:
    """The error that a stream's frame tells, in any server's dialect; `None` for a frame that tells none."""
    error = frame.get("error")
    if error is None:
        return None
    return _error_of_json(frame, error, status=None)


def error_of_response(status: int, body: bytes) -> ModelServerError:
    """The error that an HTTP answer other than 200 means; `body` may be JSON, plain text, HTML or empty."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = None
    if isinstance(answer, dict) and answer.get("error") is not None:
        return _error_of_json(answer, answer["error"], status=status)
    words = f"HTTP {status}: {body.decode(errors='replace')}"
    return _BY_STATUS.get(status, Misbehaved)(words)


def _error_of_json(frame: Mapping[str, object], error: object, *, status: int | None) -> ModelServerError:
    details: Mapping[str, object] = error if isinstance(error, dict) else {"message": error}
    words = str(details.get("message", error))
    return _class_of(frame, details, words, status)(words)


def _class_of(
    frame: Mapping[str, object], details: Mapping[str, object], words: str, status: int | None
) -> type[ModelServerError]:
    by_type = _BY_TYPE.get(str(frame.get("error_type")))
    if by_type is not None:
        return by_type
    for beginning, by_words in _BY_WORDS.items():
        if words.startswith(beginning):
            return by_words
    if status is not None:
        return _BY_STATUS_OF_JSON.get(status, Misbehaved)
    told = details.get("http_status_code", details.get("code"))
    return _BY_STATUS_OF_JSON.get(told, GenerationFailed) if isinstance(told, int) else GenerationFailed
