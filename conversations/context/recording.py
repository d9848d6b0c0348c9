"""Writes down what is in a prompt, part by part."""

from collections.abc import Iterable, Iterator
from uuid import UUID

from conversations.context.choice import Choice, dropped_up_to, leaves_out
from conversations.context.material import Said
from conversations.context.plan import Planner, line_tokens
from conversations.context.prompt import memory_line
from conversations.context.record import Record, UsedMemory, UsedSummary


def record_of(planner: Planner, choice: Choice, *, window_tokens: int | None, counted_tokens: int | None) -> Record:
    """Return the record of a chosen prompt; `counted_tokens` is the server's own count of the whole, if it was asked.

    It is exact if that was asked and each part was counted: else parts and whole have at most so many tokens.
    """
    material, path, sizes = planner.material, planner.path, planner.sizes
    is_cut, cut = leaves_out(path, choice.cut), choice.cut
    messages = choice.messages(path)
    passages_kept = len(choice.passages(planner.last)) if planner.last else 0
    passages_given = len(planner.last.passages) if planner.last else 0
    is_exact = counted_tokens is not None and _is_exact(planner, choice)
    return Record(
        tokenizer=sizes.counter.name,
        is_exact=is_exact,
        window_tokens=window_tokens,
        budget_tokens=None if window_tokens is None else planner.budget,
        total_tokens=planner.total(choice) if counted_tokens is None else counted_tokens,
        site_instructions_tokens=sizes.of(material.site_instructions),
        user_instructions_tokens=sizes.of(material.user_instructions),
        instructions_tokens=sizes.of(material.instructions),
        memories=tuple(UsedMemory(each.memory_id, line_tokens(each, sizes)) for each in choice.memories),
        summary=_used_summary(planner, choice),
        messages_kept=len(messages),
        messages_kept_tokens=planner.path_tokens(choice) - len(messages) * planner.per_message,
        messages_dropped=_dropped(planner, choice) if is_cut else 0,
        head_up_to=path.messages[cut.head_end - 1].message_id if is_cut and cut.head_end else None,
        dropped_up_to=dropped_up_to(path, cut, material.previous) if is_cut else None,
        tail_from=path.messages[cut.tail_start].message_id if is_cut and path.messages else None,
        passages_kept=passages_kept,
        passages_dropped=passages_given - passages_kept,
        trimmed_passages=_trimmed(messages, choice),
    )


def texts_of(planner: Planner, choice: Choice) -> Iterator[str]:
    """Give all texts of a prompt that are not the path's own."""
    material = planner.material
    yield from (material.site_instructions, material.user_instructions, material.instructions)
    yield from map(memory_line, choice.memories)
    if choice.summary:
        yield choice.summary.text
    for said in choice.messages(planner.path):
        if said.passages:
            yield from choice.passages(said)


def leaves_out_more(record: Record, previous: Record | None) -> bool:
    """Whether a prompt lacks something that the one before it had, or would have had."""
    if previous is None or not previous.is_trimmed:
        return record.is_trimmed
    return record.messages_dropped > previous.messages_dropped or record.passages_dropped > 0


def _trimmed(messages: Iterable[Said], choice: Choice) -> tuple[tuple[UUID, int], ...]:
    kept = ((said, len(choice.passages(said))) for said in messages if said.passages)
    return tuple((said.message_id, count) for said, count in kept if count < len(said.passages))


def _used_summary(planner: Planner, choice: Choice) -> UsedSummary | None:
    summary = choice.summary
    if summary is None:
        return None
    return UsedSummary(summary.summary_id, summary.epoch, planner.sizes.of(summary.text))


def _dropped(planner: Planner, choice: Choice) -> int:
    """Return how many messages of the path are not in the prompt, as far as anybody knows."""
    path, previous = planner.path, planner.material.previous
    read = choice.cut.tail_start - choice.cut.head_end
    if path.gap is None:
        return read
    if planner.material.unread_messages is not None:
        return planner.material.unread_messages + read
    if previous and previous.tail_from:
        # Where the path's beginning was left out before, the record counts it already.
        return previous.messages_dropped + read - (0 if previous.head_up_to else path.gap)
    return read + 1  # at least: what was not read has no number


def _is_exact(planner: Planner, choice: Choice) -> bool:
    sizes, messages = planner.sizes, choice.messages(planner.path)
    return sizes.counter.is_exact and all(map(sizes.is_exact, texts_of(planner, choice))) and sizes.are_exact(messages)
