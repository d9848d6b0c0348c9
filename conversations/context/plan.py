"""What is left out where a prompt does not fit: how much, and in which order."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from conversations.context.choice import WHOLE, Choice, Cut, summary_for
from conversations.context.exchanges import ReadablePath
from conversations.context.material import Material, Remembered, Said
from conversations.context.prompt import MEMORIES_HEADING, SUMMARY_HEADING, memory_line
from conversations.context.sizes import Sizes
from inference.token_counting import TemplateTokens

KEPT_PERCENT = 70
"""What a prompt is cut down to, in percent of the budget, so that the next turns fit without another cut."""
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


def said_tokens(said: Said, choice: Choice, sizes: Sizes) -> int:
    """Return the tokens of a message with the passages that it keeps."""
    if not said.passages:
        return sizes.of(said.content)
    return sizes.of(said.content) + sum(sizes.of(passage) + _JOINT_TOKENS for passage in choice.passages(said))


@dataclass(frozen=True, slots=True)
class Planner:
    """Weighs choices from one material, by the sizes as they are known when it is asked."""

    material: Material
    path: ReadablePath
    sizes: Sizes
    budget: int
    template: TemplateTokens
    so_far: str = ""

    @property
    def last(self) -> Said | None:
        """The question of the exchange that is never left out."""
        return self.path.messages[self.path.starts[-1]] if self.path.messages else None

    @property
    def _per_message(self) -> int:
        # Of two questions in a row the template sees one, but there are two line feeds between them.
        return max(self.template.per_message, _JOINT_TOKENS)

    def total(self, choice: Choice) -> int:
        """Return how many tokens the prompt has, at most."""
        return self._fixed(choice) + sum(self._weight(said, choice) for said in choice.messages(self.path))

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
        for kept in (head_end, 0) if head_end and self._is_head_small(choice, head_end) else (0,):
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
        """Return the cut that leaves the fewest exchanges out to get well below the limit: the last at least stays."""
        cuts = [cut for start in self.path.starts if _keeps_less(cut := Cut(head_end, start), choice.cut)]
        if not cuts:
            return None
        sums = list(accumulate((self._weight(said, choice) for said in self.path.messages), initial=0))
        fixed = self._fixed(self._with_cut(choice, cuts[0]))
        room = limit * KEPT_PERCENT // 100 - fixed - sums[head_end]
        return next((cut for cut in cuts if sums[-1] - sums[cut.tail_start] <= room), cuts[-1])

    def _with_cut(self, choice: Choice, cut: Cut) -> Choice:
        return replace(choice, cut=cut, summary=summary_for(self.material, self.path, cut))

    def _without_passages(self, choice: Choice, count: int) -> Choice:
        """Return the choice where the last question keeps `count` of its passages."""
        if self.last is None or not self.last.passages:
            return choice
        return replace(choice, passages_kept={**choice.passages_kept, self.last.message_id: count})

    def _is_head_small(self, choice: Choice, head_end: int) -> bool:
        return sum(self._weight(said, choice) for said in self.path.messages[:head_end]) * HEAD_SHARE <= self.budget

    def _weight(self, said: Said, choice: Choice) -> int:
        return said_tokens(said, choice, self.sizes) + self._per_message

    def _fixed(self, choice: Choice) -> int:
        """Return the tokens of all but the path."""
        of, material = self.sizes.of, self.material
        tokens = self.template.base + self._per_message
        for text in (material.site_instructions, material.user_instructions, material.instructions):
            tokens += of(text) + _JOINT_TOKENS
        if choice.memories:
            lines = sum(line_tokens(memory, self.sizes) for memory in choice.memories)
            tokens += of(MEMORIES_HEADING) + _JOINT_TOKENS + lines
        if choice.summary:
            tokens += of(SUMMARY_HEADING) + of(choice.summary.text) + 2 * _JOINT_TOKENS
        if self.so_far:
            tokens += of(self.so_far) + self._per_message
        return tokens


def _keeps_less(cut: Cut, than: Cut) -> bool:
    if than == WHOLE:
        return cut.tail_start > cut.head_end
    return cut.tail_start >= than.tail_start and cut != than
