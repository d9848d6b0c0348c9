"""How the OpenAPI schema describes the stream of an answer."""

from drf_spectacular.utils import OpenApiExample, OpenApiResponse

STREAM_TYPE = "text/event-stream"
_DESCRIPTION = """
The answer as server-sent events. Each has one `event:`, one `id:` and one `data:` line; `data` is a JSON object whose
`type` repeats the event's name. Ids grow within a generation: after a lost connection, ask
`GET /v1/generations/{generation_id}/stream` with `Last-Event-ID` for every later event, once and in order. Comments
(`: keep-alive`) come while nothing else does. The texts of all `token` events put together are, byte for byte, the
stored message's `content`.

| event | data, beside `type` |
| --- | --- |
| `start` | `generation_id, conversation_id, user_message_id, message_id, model, limits {requests_remaining, tokens_remaining}` |
| `queued` | `position, deadline, expected_wait_seconds` (null where not known); only when it waits |
| `token` | `text` |
| `reasoning` | `text`; from models that think aloud |
| `notice` | `code, message`; codes: `output_shortened`, `tools_disabled`, `fallback_model` (much is asked), `memory_saved`, `memory_known`, `memory_full`, `memory_too_long` (what the message asks to remember), `context_trimmed`, `resumed`, `resumed_on_another_replica` |
| `error` | `code, message, retryable` |
| `done` | `message_id, finish_reason (stop, length, cancelled, blocked, error), usage {in, cached, out}`; always last, sent once the answer is stored |
"""  # noqa: E501 — a table's row is one line
_EXAMPLE = (
    'event: token\nid: 327680\ndata: {"type":"token","text":"Hello"}\n\n'
    'event: done\nid: 393215\ndata: {"type":"done","message_id":"01980000-0000-7000-8000-000000000000",'
    '"finish_reason":"stop","usage":{"in":24,"cached":0,"out":1}}\n\n'
)
_EVENTS = ["start", "queued", "token", "reasoning", "notice", "error", "done"]
_EACH_EVENT = {
    "type": "object",
    "required": ["event", "id", "data"],
    "properties": {
        "event": {"type": "string", "enum": _EVENTS},
        "id": {"type": "string", "pattern": "^[0-9]+$"},
        "data": {"type": "string", "description": "JSON, as the table says."},
    },
}
EVENT_STREAM = OpenApiResponse(
    _EACH_EVENT,
    description=_DESCRIPTION,
    examples=[OpenApiExample("The end of an answer", value=_EXAMPLE, media_type=STREAM_TYPE)],
)
