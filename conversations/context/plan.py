"""What is left out where a prompt does not fit: how much, and in which order."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from uuid import UUID

from conversations.context.choice import WHOLE, Choice, Cut, summary_for
from conversations.context.exchanges import ReadablePath
from conversations.context.material import Material, Remembered, Said
from conversations.context.prompt import MEMORIES_HEADING, SUMMARY_HEADING, memory_line
from conversations.context.sizes import Sizes
from inference.token_counting import TemplateTokens

KEPT_PERCENT = 70
"""What a prompt is cut down to, in percent of the budget, so that the next turns fit without another cut."""
MOST_KEPT_PERCENT = 80
"""What is cut less where the newest summary does not reach as far."""
HEAD_SHARE = 3
"""The first exchange is kept while it has at most a third of the budget."""
MEMORIES_PERCENT = 15
_JOINT_TOKENS = 2
"""A line feed or two between two texts."""


def memories_within(memories: tuple[Remembered, ...], sizes: Sizes, budget: int) -> tuple[Remembered, ...]:
    """Return the newest memories that have no more than their share of the budget, the oldest first."""
    room = budget * MEMORIES_PERCENT // 100 - sizes.of(MEMORIES_HEADING)
    kept = 0
    for memory in reversed(memories):
        room -= line_tokens(memory, sizes)
        if room < 0:
            break
        kept += 1
    return memories[len(memories) - kept :]


def line_tokens(memory: Remembered, sizes: Sizes) -> int:
    """Return the tokens of a memory as an item of the list."""
    return sizes.of(memory_line(memory)) + _JOINT_TOKENS


@dataclass(slots=True)
class Planner:
    """Weighs choices from one material, by the sizes as they were known when it was made.

    `first` is the choice with which it begins: the passages of earlier messages stay as that has them.
    """

    material: Material
    path: ReadablePath
    sizes: Sizes
    budget: int
    template: TemplateTokens
    first: Choice
    so_far: str = ""
    _sums: Sequence[int] = field(init=False)
    """The tokens in front of each place of the path, and of all of it."""

    def __post_init__(self) -> None:
        around = self.per_message
        weights = [tokens + around for tokens in self.sizes.of_contents(self.path.messages)]
        for place, said in enumerate(self.path.messages):
            if said.passages:
                weights[place] += self._passages_tokens(self.first.passages(said))
        self._sums = list(accumulate(weights, initial=0))

    @property
    def last(self) -> Said | None:
        """The question of the exchange that is never left out."""
        return self.path.messages[self.path.starts[-1]] if self.path.messages else None

    @property
    def per_message(self) -> int:
        """What each message has beside its content."""
        # Of two questions in a row the template sees one, but there are two line feeds between them.
        return max(self.template.per_message, _JOINT_TOKENS)

    def total(self, choice: Choice) -> int:
        """Return how many tokens the prompt has, at most."""
        return self._fixed(choice) + self.path_tokens(choice)

    def path_tokens(self, choice: Choice) -> int:
        """Return the tokens of the kept messages, with what the template puts around them."""
        tokens = self._sums[choice.cut.head_end] + self._sums[-1] - self._sums[choice.cut.tail_start]
        if self.last is None or not self.last.passages:
            return tokens
        dropped = self.first.passages(self.last)[len(choice.passages(self.last)) :]
        return tokens - self._passages_tokens(dropped)

    def reduced(self, choice: Choice, limit: int) -> Choice:
        """Return the fullest choice with less in it that has at most `limit` tokens, or the least there can be.

        First exchanges go, the oldest first but for the path's first, and more of them than must; then that one;
        then the last question's passages, the least relevant first; then memories, the oldest first; then the summary.
        """
        return next((each for each in self._ever_less(choice, limit) if self.total(each) <= limit), self.least(choice))

    def least(self, choice: Choice) -> Choice:
        """Return the choice of nothing but what must be said: the instructions and the last exchange."""
        return replace(self._without_passages(choice, 0), cut=Cut(0, self.path.starts[-1]), memories=(), summary=None)

    def _ever_less(self, choice: Choice, limit: int) -> Iterator[Choice]:
        head_end = self.path.head_end if choice.cut == WHOLE else choice.cut.head_end
        for kept in (head_end, 0) if head_end and self._sums[head_end] * HEAD_SHARE <= self.budget else (0,):
            cut = self._cut_by_block(choice, kept, limit)
            if cut:
                yield self._with_cut(choice, cut)
        bare = self._with_cut(choice, Cut(0, self.path.starts[-1]))
        kept_before = len(bare.passages(self.last)) if self.last else 0
        for count in range(kept_before - 1, -1, -1):
            yield self._without_passages(bare, count)
        bare = self._without_passages(bare, 0)
        for count in range(1, len(bare.memories) + 1):
            yield replace(bare, memories=bare.memories[count:])

    def _cut_by_block(self, choice: Choice, head_end: int, limit: int) -> Cut | None:
        """Return the cut that gets well below the limit; the last exchange stays.

        Where the newest summary ends a little before, it is cut there: then it stands for all that is left out, and no
        later one need take its place, after which the whole would have to be read anew.
        """
        starts = self._later_starts(choice.cut, head_end)
        if not starts:
            return None
        summary = self._with_cut(choice, Cut(head_end, starts[-1])).summary
        besides = self._fixed(replace(choice, summary=summary)) + self._sums[head_end] + self._sums[-1]

        def fullest(percent: int) -> int:
            dropped_tokens = besides - limit * percent // 100
            return min(bisect_left(starts, dropped_tokens, key=self._sums.__getitem__), len(starts) - 1)

        wanted = fullest(KEPT_PERCENT)
        near = starts[fullest(MOST_KEPT_PERCENT) : wanted + 1]
        covered = [start for start in near if summary and self._id_before(start) <= summary.covers_up_to]
        return Cut(head_end, covered[-1] if covered else starts[wanted])

    def _later_starts(self, cut: Cut, head_end: int) -> tuple[int, ...]:
        """Return where the rest may begin if less is to be kept than with a cut."""
        least = head_end + 1 if cut == WHOLE else cut.tail_start + (head_end == cut.head_end)
        return self.path.starts[bisect_left(self.path.starts, least) :]

    def _id_before(self, place: int) -> UUID:
        return self.path.messages[place - 1].message_id

    def _with_cut(self, choice: Choice, cut: Cut) -> Choice:
        return replace(choice, cut=cut, summary=summary_for(self.material, self.path, cut))

    def _without_passages(self, choice: Choice, count: int) -> Choice:
        """Return the choice where the last question keeps `count` of its passages."""
        if self.last is None or not self.last.passages:
            return choice
        return replace(choice, passages_kept={**choice.passages_kept, self.last.message_id: count})

    def _passages_tokens(self, passages: Iterable[str]) -> int:
        return sum(self.sizes.of(passage) + _JOINT_TOKENS for passage in passages)

    def _fixed(self, choice: Choice) -> int:
        """Return the tokens of all but the path."""
        of, material = self.sizes.of, self.material
        tokens = self.template.base + self.per_message
        for text in (material.site_instructions, material.user_instructions, material.instructions):
            tokens += of(text) + _JOINT_TOKENS
        if choice.memories:
            lines = sum(line_tokens(memory, self.sizes) for memory in choice.memories)
            tokens += of(MEMORIES_HEADING) + _JOINT_TOKENS + lines
        if choice.summary:
            tokens += of(SUMMARY_HEADING) + of(choice.summary.text) + 2 * _JOINT_TOKENS
        if self.so_far:
            tokens += of(self.so_far) + self.per_message
        return tokens
