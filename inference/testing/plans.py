"""One prompt's answer, as a request shall have it."""

import json
from dataclasses import dataclass

from inference.testing.answers import Answer, answer_with, bounded, remaining, whole_answer
from inference.testing.directives import Directive, parse_directive
from inference.testing.requests import Wanted, grammar_schema, validate
from inference.testing.settings import TwinSettings
from inference.testing.tools import ToolCall, example_of


@dataclass(frozen=True, slots=True)
class Plan:
    """What is wanted and what will be generated; `index` tells the prompts of one request apart."""

    wanted: Wanted
    answer: Answer
    input_length: int
    index: int = 0
    tool_call: ToolCall | None = None


def plan_of(wanted: Wanted, settings: TwinSettings, *, index: int) -> Plan:
    """The answer within the limits of the request and of the server; raises `Rejected` by TGI's rules."""
    input_length = validate(wanted, settings)
    asked = wanted.parameters.get("max_new_tokens")
    room = settings.max_total_tokens - input_length
    limit = room if asked is None else min(asked, room)
    directive = parse_directive(wanted.prompt.user)
    call = wanted.offer.call(directive.tool_call)
    answer = answer_with(json.dumps(call.arguments)) if call else _text_answer(wanted, directive, settings, limit)
    answer = bounded(answer, limit, wanted.parameters.get("stop") or ())
    return Plan(wanted, answer, input_length, index, call)


def _text_answer(wanted: Wanted, directive: Directive, settings: TwinSettings, limit: int) -> Answer:
    prompt = wanted.prompt
    if settings.repeats and directive == Directive():
        answer = answer_with("\n".join(line for line in prompt.user.split("\n") if settings.repeats in line))
    else:
        answer = whole_answer(prompt.user, settings.answer_tokens, at_most=None if prompt.partial else limit + 1)
    schema = grammar_schema(wanted.parameters.get("grammar"))
    if schema is not None and directive.text is None and directive.pieces is None:
        answer = answer_with(json.dumps(example_of(schema)))
    return remaining(answer, prompt.partial) if prompt.partial else answer
