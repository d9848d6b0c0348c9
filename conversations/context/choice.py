"""What of the material goes into a prompt, and how a prompt goes on where the one before it stood."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from conversations.context.exchanges import ReadablePath
from conversations.context.material import Material, Remembered, Said, Summarised
from conversations.context.record import Record


class Cut(NamedTuple):
    """What lies from `head_end` up to `tail_start` is left out; both are places in a readable path."""

    head_end: int
    tail_start: int


WHOLE = Cut(0, 0)


@dataclass(frozen=True, slots=True)
class Choice:
    """What is in the prompt. `passages_kept` names only messages of which some passages are left out."""

    cut: Cut
    memories: tuple[Remembered, ...]
    summary: Summarised | None
    passages_kept: Mapping[UUID, int]

    def messages(self, path: ReadablePath) -> tuple[Said, ...]:
        """Return the messages that are kept."""
        return path.messages[: self.cut.head_end] + path.messages[self.cut.tail_start :]

    def passages(self, said: Said) -> tuple[str, ...]:
        """Return the passages that a message keeps."""
        return said.passages[: self.passages_kept.get(said.message_id)]


def leaves_out(path: ReadablePath, cut: Cut) -> bool:
    """Whether messages are missing from the prompt, be it that they were not even read."""
    return path.gap is not None or cut.tail_start > cut.head_end


def continued_cut(path: ReadablePath, previous: Record | None) -> Cut | None:
    """Return where the prompt before was cut, `None` where nothing was left out or the place is not to be found."""
    if previous is None or previous.tail_from is None:
        return None
    tail_start = path.place_of(previous.tail_from)
    if tail_start is None or tail_start not in path.starts:
        return None
    head = path.place_of(previous.head_up_to)
    return Cut(0 if head is None or head >= tail_start else head + 1, tail_start)


def widest_cut(path: ReadablePath) -> Cut:
    """Return the cut that keeps all that may follow one another in a prompt."""
    first = path.starts[0]
    if path.gap is None and first == 0:
        return WHOLE
    is_question = bool(path.messages) and path.messages[first].role == "user"
    return Cut(path.head_end if is_question else 0, first)


def dropped_up_to(path: ReadablePath, cut: Cut, previous: Record | None) -> UUID | None:
    """Return the last message that is left out; `None` where there is none, or nobody knows it."""
    if cut.tail_start > max(cut.head_end, path.gap or 0):
        return path.messages[cut.tail_start - 1].message_id
    if path.gap is None or previous is None or not path.messages:
        return None
    return previous.dropped_up_to if previous.tail_from == path.messages[cut.tail_start].message_id else None


def summary_for(material: Material, path: ReadablePath, cut: Cut) -> Summarised | None:
    """Return the summary that stands for what is left out.

    The one in use stays, so that the prompt goes on as it began, until the cut moves, or until it lacks something that
    was left out and a newer one has all of it. While summaries come later than questions, each has a little more than
    the one before: to take every one of them would begin the prompt anew at almost every turn.
    """
    if not material.summaries or not leaves_out(path, cut):
        return None
    newest = max(material.summaries, key=lambda each: (each.covers_up_to, each.epoch))
    used = _summary_of(material, material.previous)
    if used is None or cut != continued_cut(path, material.previous):
        return newest
    last_dropped = dropped_up_to(path, cut, material.previous)
    if last_dropped is None:  # nobody knows how much is enough
        return newest
    has_all_newly = used.covers_up_to < last_dropped <= newest.covers_up_to
    return newest if has_all_newly else used


def first_choice(material: Material, path: ReadablePath, memories: tuple[Remembered, ...], *, anew: bool) -> Choice:
    """Return what would be in the prompt if it fits: as in the one before, or `anew` where more may fit now."""
    cut = None if anew and path.gap is None else continued_cut(path, material.previous)
    cut = cut or widest_cut(path)
    trimmed = dict(material.previous.trimmed_passages) if material.previous else {}
    return Choice(cut, memories, summary_for(material, path, cut), trimmed)


def choice_of(material: Material, path: ReadablePath, record: Record) -> Choice:
    """Return what a record says that there was in its prompt."""
    used = {each.memory_id for each in record.memories}
    return Choice(
        continued_cut(path, record) or widest_cut(path),
        tuple(memory for memory in material.memories if memory.memory_id in used),
        _summary_of(material, record),
        dict(record.trimmed_passages),
    )


def _summary_of(material: Material, record: Record | None) -> Summarised | None:
    used = record.summary.summary_id if record and record.summary else None
    return next((each for each in material.summaries if each.summary_id == used), None)
