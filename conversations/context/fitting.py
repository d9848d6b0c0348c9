"""Keeps a prompt within the model's window: what is left out, and how much room there is for the answer."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from uuid import UUID

from conversations.context.choice import Choice, first_choice
from conversations.context.exchanges import readable
from conversations.context.material import Material, Remembered, Said
from conversations.context.plan import MEMORIES_PERCENT, Planner, memories_within
from conversations.context.prompt import MEMORIES_HEADING, SUMMARY_HEADING, memory_line, written
from conversations.context.record import Record
from conversations.context.recording import leaves_out_more, record_of, texts_of
from conversations.context.sizes import Sizes
from conversations.exceptions import ContentTooLong
from inference.messages import ChatMessage
from inference.template_tokens import SUPPOSED
from inference.token_counting import TokenCounter

LEAST_ANSWER_TOKENS = 64
"""An answer gets at least this much room, however long the prompt."""
_SURE_PERCENT, _HOPELESS_PERCENT = 90, 150
"""Between these of the budget the sum of the parts, an upper bound, decides nothing: the server counts the whole."""
_MOST_COUNTED_LATER = 64
_NO_LIMIT = sys.maxsize


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is sent, and what is known of it. `max_new_tokens` fits into the window beside the prompt.

    `is_trimmed` says that something is left out that the prompt before did not lack.
    """

    messages: tuple[ChatMessage, ...]
    max_new_tokens: int
    record: Record
    is_trimmed: bool
    _planner: Planner
    _choice: Choice

    @property
    def new_counts(self) -> Mapping[UUID, int]:
        """Exact counts of messages that had none for this tokenizer, as far as they were taken."""
        return self._planner.sizes.newly_counted(self._planner.path.messages)

    async def counted(self, tokens_in: int | None) -> Record:
        """Return the record with its parts counted, where before some had upper bounds.

        Of many messages that were never counted the newest are; the others' turn comes with later answers. `tokens_in`
        is the server's own count of the whole prompt, if it told one. Raise `ModelServerError`.
        """
        if self.record.is_exact:
            return self.record
        planner, choice = self._planner, self._choice
        uncounted = planner.sizes.uncounted(reversed(choice.messages(planner.path)))
        await planner.sizes.count(texts_of(planner, choice), islice(uncounted, _MOST_COUNTED_LATER), _NO_LIMIT)
        return record_of(
            replace(planner), choice, window_tokens=self.record.window_tokens, counted_tokens=tokens_in or None
        )


def budget_of(window_tokens: int, answer_tokens: int) -> int:
    """Return how many tokens a prompt may have beside an answer that may have `answer_tokens`."""
    return max(0, window_tokens - min(answer_tokens, max(LEAST_ANSWER_TOKENS, window_tokens // 4)))


async def fit(
    material: Material, *, counter: TokenCounter, window_tokens: int | None, answer_tokens: int, so_far: str = ""
) -> Fitted:
    """Return the fullest prompt that goes on as the one before and has room for an answer of `answer_tokens`.

    `so_far` is the beginning of the answer. What is surely short is not counted; of what is longer, the texts without a
    stored count are; and near the budget the server counts the whole. Raise `ContentTooLong` where instructions and
    last exchange alone do not fit, `ModelServerError` where nobody could count.
    """
    path, sizes = readable(material), Sizes(counter)
    budget = _NO_LIMIT if window_tokens is None else budget_of(window_tokens, answer_tokens)
    memories = await _memories(material, sizes, budget)
    choice = first_choice(material, path, memories, anew=_has_more_room(material, counter.name, budget, so_far))
    planner = Planner(material, path, sizes, budget, SUPPOSED, choice, so_far)
    counted: int | None = None
    if window_tokens is not None:
        planner = await _weighed(planner, choice, min(_sure_tokens(budget), window_tokens - answer_tokens))
        if planner.total(choice) > _sure_tokens(budget):
            choice, counted = await _verified(planner, choice)
    record = record_of(planner, choice, window_tokens=window_tokens, counted_tokens=counted)
    return Fitted(
        messages=written(material, path, choice, so_far),
        max_new_tokens=min(answer_tokens, (window_tokens or _NO_LIMIT) - record.total_tokens),
        record=record,
        is_trimmed=leaves_out_more(record, material.previous),
        _planner=planner,
        _choice=choice,
    )


def _sure_tokens(budget: int) -> int:
    return budget * _SURE_PERCENT // 100


def _has_more_room(material: Material, tokenizer: str, budget: int, so_far: str) -> bool:
    """Whether more may fit than did before. An answer that was begun goes on with what it had."""
    previous = material.previous
    if previous is None or so_far:
        return False
    return previous.tokenizer != tokenizer or budget > (previous.budget_tokens or _NO_LIMIT)


async def _memories(material: Material, sizes: Sizes, budget: int) -> tuple[Remembered, ...]:
    kept = memories_within(material.memories, sizes, budget)
    if kept == material.memories:
        return kept
    lines = [memory_line(memory) for memory in reversed(material.memories)]
    await sizes.count([MEMORIES_HEADING], lines, budget * MEMORIES_PERCENT // 100)
    return memories_within(material.memories, sizes, budget)


async def _weighed(planner: Planner, choice: Choice, enough_tokens: int) -> Planner:
    """Return the planner with better counts, unless the prompt has few tokens by those that there are."""
    if planner.total(choice) <= enough_tokens:
        return planner
    planner = replace(planner, template=await planner.sizes.counter.template())
    if planner.total(choice) > enough_tokens:
        await planner.sizes.count(_needed(planner, choice), _newest_first(planner, choice), planner.budget)
        planner = replace(planner)  # which weighs anew
    return planner


def _newest_first(planner: Planner, choice: Choice) -> Iterator[str | Said]:
    for said in reversed(planner.path.messages[choice.cut.tail_start :]):
        yield said
        yield from said.passages


def _needed(planner: Planner, choice: Choice) -> Iterator[str]:
    """Give the texts that may be in the prompt however much of the path's middle is left out."""
    material = planner.material
    yield from (material.site_instructions, material.user_instructions, material.instructions, planner.so_far)
    if choice.memories:
        yield from (MEMORIES_HEADING, *map(memory_line, choice.memories))
    if material.summaries:
        yield from (SUMMARY_HEADING, *(summary.text for summary in material.summaries))
    for said in planner.path.messages[: planner.path.head_end]:
        yield from said.passages
        if planner.sizes.counter.name not in said.token_counts:
            yield said.content


async def _verified(planner: Planner, choice: Choice) -> tuple[Choice, int]:
    """Return the choice that fits by the server's own count of the whole prompt, and that count."""
    counter, budget = planner.sizes.counter, planner.budget
    if planner.total(choice) > budget * _HOPELESS_PERCENT // 100:
        choice = planner.reduced(choice, budget)
    while (counted := await counter.count_prompt(_messages(planner, choice))) > budget:
        if choice == planner.least(choice):
            raise too_long(counted, budget)
        # The sum of the parts is not the whole: what the parts may have is as much less as they were wrong by.
        total = planner.total(choice)
        choice = planner.reduced(choice, min(total - 1, total * budget // counted))
    return choice, counted


def _messages(planner: Planner, choice: Choice) -> tuple[ChatMessage, ...]:
    return written(planner.material, planner.path, choice, planner.so_far)


def too_long(tokens: int, limit: int) -> ContentTooLong:
    """Return the error for a prompt of which not even instructions and message fit."""
    over = tokens - limit
    return ContentTooLong(
        f"The message and the instructions have {tokens:,} tokens; {limit:,} fit into this model: {over:,} too many.",
        param="content",
        details={"tokens": tokens, "limit": limit, "over": over},
    )
