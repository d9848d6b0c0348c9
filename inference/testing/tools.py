"""Which tool an answer calls, and with what: TGI makes one call at most, forced by a grammar."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from inference.testing.rejections import Rejected

_EXAMPLES: dict[str, object] = {"string": "twin", "integer": 1, "number": 1.5, "boolean": True, "null": None}


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of a request. `named` is the one that must be called, or a choice among all."""

    functions: tuple[dict[str, Any], ...] = ()
    named: str = "auto"
    call_id: str = "0"

    def call(self, wished: dict[str, Any] | None) -> "ToolCall | None":
        """The call to answer with: the wished one where it is allowed, else one where it is demanded."""
        if not self.functions or self.named == "none":
            return None
        if self.named == "auto":
            return ToolCall(self.call_id, wished["name"], wished.get("arguments", {})) if wished else None
        allowed = [function for function in self.functions if self.named in ("required", function["name"])]
        if wished and wished["name"] in (function["name"] for function in allowed):
            return ToolCall(self.call_id, wished["name"], wished.get("arguments", {}))
        function = allowed[0]
        return ToolCall(self.call_id, function["name"], example_of(function.get("parameters") or {}))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call."""

    call_id: str
    name: str
    arguments: object


NO_OFFER = Offer()


def offer_of(body: dict[str, Any]) -> Offer:
    """The tools of a chat request; raises `Rejected` for an unknown one, or beside a grammar."""
    tools, choice = body.get("tools"), body.get("tool_choice") or "auto"
    if tools is not None and body.get("response_format") is not None:
        raise Rejected("tool_error", "Tool error: Grammar and tools are mutually exclusive")
    functions = tuple(tool["function"] for tool in tools or ())
    named = choice if isinstance(choice, str) else choice["function"]["name"]
    if named not in ("auto", "none", "required", *(function["name"] for function in functions)):
        raise Rejected("tool_error", f"Tool error: Tool with name {named} not found")
    return Offer(functions, named, _next_call_id(body["messages"]))


def example_of(schema: dict[str, Any]) -> object:
    """A value that a JSON schema admits, the same each time."""
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "object")
    if kind == "object":
        return {name: example_of(part) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [example_of(schema.get("items", {"type": "string"}))] * max(schema.get("minItems", 1), 1)
    return _EXAMPLES[kind]


def _next_call_id(messages: list[dict[str, Any]]) -> str:
    used = [message["tool_call_id"] for message in messages if message.get("tool_call_id")]
    if not used:
        return "0"
    numbers = [int(call_id) for call_id in used if call_id.isdecimal()]
    return str(max(numbers) + 1) if len(numbers) == len(used) else str(uuid4())
