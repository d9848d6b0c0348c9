"""Renders chat messages into the prompt that the model was trained on."""

import datetime
import json
from collections.abc import Sequence
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from inference.local_server.bodies import JsonObject
from inference.local_server.engine import TemplateSource
from inference.local_server.errors import TemplateError


class ChatTemplate:
    """A model's own chat template."""

    def __init__(self, source: TemplateSource) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols"],
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = _strftime_now
        self._template = environment.from_string(source.template)
        self._source = source
        self.uses_tools = "tools" in source.template

    def render(self, messages: Sequence[JsonObject], tools: Sequence[JsonObject] | None = None) -> str:
        """The prompt that asks for an answer, or for more of the last message if that is the assistant's.

        A continued message is right-trimmed, as TGI does. Raises `TemplateError`.
        """
        last = messages[-1] if messages else {}
        if last.get("role") != "assistant":
            return self._rendered(messages, tools, asks_for_answer=True)
        if not last["content"].strip():
            return self._rendered(messages[:-1], tools, asks_for_answer=True)
        rendered = self._rendered(messages, tools, asks_for_answer=False)
        content = last["content"].strip()
        end = rendered.rfind(content) + len(content)
        return rendered[:end]

    def _rendered(
        self, messages: Sequence[JsonObject], tools: Sequence[JsonObject] | None, *, asks_for_answer: bool
    ) -> str:
        try:
            return self._template.render(
                messages=list(messages),
                tools=tools,
                bos_token=self._source.bos_token,
                eos_token=self._source.eos_token,
                add_generation_prompt=asks_for_answer,
            )
        except jinja2.TemplateError as error:
            raise TemplateError(str(error)) from error


def _to_json(value: Any, indent: int | None = None) -> str:
    """Jinja's own filter escapes for HTML, which no model has seen."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.datetime.now(tz=datetime.UTC).astimezone().strftime(form)
