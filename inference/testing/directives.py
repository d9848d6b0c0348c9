"""What a prompt can ask of the twin: a JSON object after `@twin ` on the first line of the last user message."""

import json
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from inference.testing.faults import Fault, InvalidFaultError, parse_fault

PREFIX = "@twin "

type Finish = Literal["stop", "length", "stop_sequence"]


class InvalidDirectiveError(ValueError):
    """The first line begins like a directive and is none."""


@dataclass(frozen=True, slots=True)
class Directive:
    """How to answer one prompt; `None` leaves it to the settings.

    `text` or `pieces` is the exact answer, `echo` answers what follows the first line, `stamp` makes each token the
    machine's monotonic clock in nanoseconds at the moment it is sent. `tool_call` has a `name` and `arguments`.
    """

    tokens: int | None = None
    token_ms: float | None = None
    prefill_ms: float | None = None
    text: str | None = None
    pieces: tuple[str, ...] | None = None
    echo: bool = False
    stamp: bool = False
    tool_call: dict[str, Any] | None = None
    finish: Finish = "stop"
    faults: tuple[Fault, ...] = ()
    rest: str = field(default="", compare=False)


def parse_directive(prompt: str) -> Directive:
    """The directive of a user message; an empty one where the message holds none."""
    first, _, rest = prompt.partition("\n")
    if not first.startswith(PREFIX):
        return Directive(rest=prompt)
    try:
        wishes = json.loads(first.removeprefix(PREFIX))
        return _directive(wishes, rest)
    except (json.JSONDecodeError, InvalidFaultError, TypeError) as error:
        raise InvalidDirectiveError(f"not a directive: {error}") from error


def _directive(wishes: dict[str, Any], rest: str) -> Directive:
    faults = [*wishes.pop("faults", []), *([wishes.pop("fault")] if "fault" in wishes else [])]
    unknown = wishes.keys() - {known.name for known in fields(Directive)}
    if unknown:
        raise InvalidDirectiveError(f"unknown keys: {', '.join(sorted(unknown))}")
    if wishes.get("pieces") is not None:
        wishes["pieces"] = tuple(wishes["pieces"])
    return Directive(**wishes, faults=tuple(parse_fault(fault) for fault in faults), rest=rest)
