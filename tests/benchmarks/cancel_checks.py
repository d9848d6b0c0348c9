"""What became of answers that were stopped: at the model server, and in the database."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.cancel_load import Stopping
from tests.benchmarks.product import Product

_STAMP = re.compile(r"\d+")
_STORED = """
SELECT g.message_id::text, g.status, m.content, m.tokens_out, u.tokens_out
FROM conversations_generation g JOIN conversations_message m ON m.id = g.message_id
LEFT JOIN accounts_usagerecord u ON u.generation_id = g.message_id
"""
_UNDER_WAY = "SELECT count(*) FROM conversations_generation WHERE status IN ('queued', 'running')"


@dataclass(frozen=True, slots=True)
class Checked:
    """The times of what went well, in milliseconds since the call was sent, and in words what did not."""

    count: int
    closed_ms: list[float]
    answered_ms: list[float]
    done_ms: list[float]
    not_stopped: int
    wrong: int
    left_open: int
    left_under_way: int
    permits_held: int
    faults: list[str]


@dataclass(frozen=True, slots=True)
class CheckedQueued:
    """The same of answers that were stopped while they waited; `reached` is how many the model server saw."""

    count: int
    answered_ms: list[float]
    reached: int
    not_stopped: int


def check(product: Product, stoppings: Sequence[Stopping]) -> Checked:
    """Compare what each client saw with what the model server and the database say."""
    closed_ns = _closed_by_the_product(product)
    stored = {row[0]: row[1:] for row in product.query(_STORED)}
    stopped = [each for each in stoppings if each.is_answered and each.number in closed_ns]
    wrong = [fault for each in stoppings if (fault := _fault(each, stored.get(each.generation_id)))]
    missing = [f"{each.number}: {each.called.body[:200]!r}" for each in stoppings if each not in stopped]
    return Checked(
        count=len(stoppings),
        closed_ms=[(closed_ns[each.number] - each.called_ns) / 1e6 for each in stopped],
        answered_ms=[each.answered_ms for each in stopped],
        done_ms=[each.done_ms for each in stopped],
        not_stopped=len(missing),
        wrong=len(wrong),
        left_open=product.stack.twin.report()["open"],
        left_under_way=product.query(_UNDER_WAY)[0][0],
        permits_held=product.permits_held(),
        faults=[*missing, *wrong],
    )


def check_queued(product: Product, stoppings: Sequence[Stopping]) -> CheckedQueued:
    """See that what was stopped while it waited has ended, and that no model server has heard of it."""
    seen = sum(record["prompt"].startswith("@twin") for record in product.stack.twin.report()["requests"])
    stored = {row[0]: row[1] for row in product.query(_STORED)}
    stopped = [each for each in stoppings if each.is_answered and stored.get(each.generation_id) == "cancelled"]
    return CheckedQueued(len(stoppings), [each.answered_ms for each in stopped], seen, len(stoppings) - len(stopped))


def _closed_by_the_product(product: Product) -> dict[int, float]:
    """Return when the model server saw the connection of each answer closed, in nanoseconds of the monotonic clock."""
    return {
        int(record["prompt"].rpartition("\n")[2]): record["closed_monotonic"] * 1e9
        for record in product.stack.twin.report()["requests"]
        if record["closed_by"] == "client" and record["prompt"].startswith("@twin")
    }


def _fault(stopping: Stopping, stored: tuple[Any, ...] | None) -> str:
    """Say in what the stored answer differs from what its reader saw and paid; nothing where it does not."""
    if stored is None:
        return f"{stopping.number}: not stored: {stopping.answer.body[-300:]!r}"
    status, content, tokens_out, tokens_paid = stored
    seen = [token.sent_ns for token in stopping.answer.tokens()]
    if status != "cancelled" or not stopping.answer.body.rstrip().endswith(b"0"):
        return f"{stopping.number}: {status}, {stopping.answer.body[-300:]!r}"
    if [int(stamp) for stamp in _STAMP.findall(content)] != seen or not tokens_out == tokens_paid == len(seen):
        return (
            f"{stopping.number}: {len(seen)} tokens seen, {tokens_out} counted, {tokens_paid} paid, {content[-60:]!r}"
        )
    return ""
