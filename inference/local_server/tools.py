"""Tool calls: the grammar that makes a model call one, and the reading of what it wrote."""

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from inference.local_server.bodies import JsonObject
from inference.local_server.chat_body import ChatBody, Tool
from inference.local_server.errors import ToolError

NO_TOOL = "no_tool"
"""The pseudo function by which a model says that it wants to answer in words."""

_NO_TOOL = Tool(NO_TOOL, "Answer in words, without any function.", {"type": "object", "properties": {}})

_CALL_HEAD = re.compile(r'\s*\{\s*"function"\s*:\s*\{\s*"_name"\s*:\s*("(?:[^"\\]|\\.)*")\s*(?:,|(?=\}))')

_PROMPT = (
    'Answer with one JSON object: {"function": {"_name": the name of the function, then its arguments by name}}. '
    "Take the arguments from what the user says."
)
_PROMPT_WITH_CHOICE = f' Where no function fits, choose "{NO_TOOL}".'


@dataclass(frozen=True, slots=True)
class ToolPlan:
    """The tools of one request that may be called, and whether one must be."""

    tools: tuple[Tool, ...]
    must_call: bool
    prompt: str
    call_id: str

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools that the model sees."""
        return self.tools if self.must_call else (*self.tools, _NO_TOOL)

    def schema(self) -> JsonObject:
        """The JSON schema of a call, TGI's form: `{"function": {"_name": …, …arguments}}`."""
        alternatives = [_call_schema(tool) for tool in self.offered]
        definitions = {name: value for tool in self.offered for name, value in tool.arguments.get("$defs", {}).items()}
        schema: JsonObject = {
            "type": "object",
            "properties": {"function": {"anyOf": alternatives}},
            "required": ["function"],
            "additionalProperties": False,
        }
        return schema | ({"$defs": definitions} if definitions else {})

    def described(self) -> list[JsonObject]:
        """The tools as the chat template gets them."""
        return [
            {
                "type": "function",
                "function": {
                    "description": tool.description,
                    "name": tool.name,
                    "arguments": orjson.dumps(tool.arguments).decode(),
                },
            }
            for tool in self.offered
        ]


def plan_tools(body: ChatBody) -> ToolPlan | None:
    """Which tools apply; `None` when none do. Raises `ToolError`."""
    if body.tools is not None and body.response_format is not None:
        raise ToolError("Grammar and tools are mutually exclusive")
    if not body.tools or body.tool_choice == "none":
        return None
    must_call = body.tool_choice != "auto"
    tools = body.tools
    if body.tool_choice not in ("auto", "required"):
        tools = tuple(tool for tool in tools if tool.name == body.tool_choice)
        if not tools:
            raise ToolError(f"Tool with name {body.tool_choice} not found")
    prompt = body.tool_prompt or _PROMPT + ("" if must_call else _PROMPT_WITH_CHOICE)
    return ToolPlan(tools, must_call, prompt, _next_call_id(body.messages))


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of a call: its name comes once, with the first piece of the arguments."""

    id: str
    name: str | None
    arguments: str


class CallReader:
    """Reads a call while it is written. Nothing is known until the name is complete."""

    def __init__(self, call_id: str) -> None:
        self._call_id = call_id
        self._head = ""
        self._arguments = ""
        self.name: str | None = None

    def read(self, text: str) -> list[CallDelta]:
        """The pieces that `text` adds; the brace that closes the outer object is left out."""
        if self.name is not None:
            return self._read_arguments(text)
        self._head += text
        found = _CALL_HEAD.match(self._head)
        if found is None:
            return []
        self.name = orjson.loads(found[1])
        self._arguments = "{"
        return [CallDelta(self._call_id, self.name, "{"), *self._read_arguments(self._head[found.end() :])]

    def _read_arguments(self, text: str) -> list[CallDelta]:
        if "}" in text and _closes_call(self._arguments + text):
            text = text.rstrip().removesuffix("}")
        self._arguments += text
        return [CallDelta(self._call_id, None, text)] if text else []


def complete_arguments(text: str) -> JsonObject:
    """The arguments of a finished call. Raises `ToolError` when it was cut."""
    try:
        parsed: JsonObject = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ToolError("Failed to parse generated text as a tool call") from error
    return parsed


def _closes_call(arguments: str) -> bool:
    """Whether the arguments and the outer object around them are complete."""
    try:
        orjson.loads('{"function": ' + arguments)
    except orjson.JSONDecodeError:
        return False
    return True


def _call_schema(tool: Tool) -> JsonObject:
    arguments = tool.arguments.get("properties", {})
    return {
        "type": "object",
        "properties": {"_name": {"const": tool.name}, **arguments},
        "required": ["_name", *tool.arguments.get("required", [])],
        "additionalProperties": tool.arguments.get("additionalProperties", False),
    }


def _next_call_id(messages: Sequence[JsonObject]) -> str:
    """One above the largest id among the calls of the conversation."""
    ids = [call_id for message in messages for call_id in message.get("tool_call_ids", [])]
    if not ids:
        return "0"
    if not all(call_id.isdecimal() for call_id in ids):
        return str(uuid.uuid4())
    return str(max(int(call_id) for call_id in ids) + 1)
