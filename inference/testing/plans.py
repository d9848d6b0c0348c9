"""One prompt's answer, as a request shall have it."""

from dataclasses import dataclass

from inference.testing.answers import Answer, bounded, remaining, whole_answer
from inference.testing.requests import Wanted, validate
from inference.testing.settings import TwinSettings


@dataclass(frozen=True, slots=True)
class Plan:
    """What is wanted and what will be generated; `index` tells the prompts of one request apart."""

    wanted: Wanted
    answer: Answer
    input_length: int
    index: int = 0


def plan_of(wanted: Wanted, settings: TwinSettings, *, index: int) -> Plan:
    """The answer within the limits of the request and of the server; raises `Rejected` by TGI's rules."""
    input_length = validate(wanted, settings)
    answer = whole_answer(wanted.prompt.user, settings.answer_tokens)
    if wanted.prompt.partial:
        answer = remaining(answer, wanted.prompt.partial)
    room = settings.max_total_tokens - input_length
    asked = wanted.parameters.get("max_new_tokens")
    answer = bounded(answer, room if asked is None else min(asked, room), wanted.parameters.get("stop") or ())
    return Plan(wanted, answer, input_length, index)
