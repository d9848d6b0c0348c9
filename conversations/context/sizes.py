"""How many tokens the texts of a prompt have: as stored, as counted now, or at most."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from conversations.context.material import Said
from inference.token_counting import TokenCounter, upper_bound

_LIKELY_BYTES_PER_TOKEN = 4


@dataclass(slots=True)
class Sizes:
    """Sizes by text, so that what is said twice is counted once. What was not counted has its upper bound."""

    counter: TokenCounter
    _counted: dict[str, int] = field(default_factory=dict)
    _bounds: dict[str, int] = field(default_factory=dict)

    def of(self, text: str) -> int:
        """Return how many tokens a text has, at most."""
        size = self._counted.get(text)
        if size is None:
            size = self._bounds.get(text)
        if size is None:
            size = self._bounds[text] = upper_bound(text)
        return size

    def of_contents(self, messages: Iterable[Said]) -> Iterator[int]:
        """Give how many tokens each message's own text has, at most."""
        name = self.counter.name
        for said in messages:
            stored = said.token_counts.get(name)
            yield self.of(said.content) if stored is None else stored

    def is_exact(self, text: str) -> bool:
        return not text or text in self._counted

    def uncounted(self, messages: Iterable[Said]) -> Iterator[Said]:
        """Give the messages whose own text was never counted."""
        name = self.counter.name
        return (said for said in messages if name not in said.token_counts and said.content not in self._counted)

    def are_exact(self, messages: Iterable[Said]) -> bool:
        """Whether the messages' own texts were counted."""
        return next(self.uncounted(messages), None) is None

    def newly_counted(self, messages: Iterable[Said]) -> dict[UUID, int]:
        """Return the exact counts of messages that had none; nothing where the counter had to guess."""
        if not self._counted or not self.counter.is_exact:
            return {}
        name = self.counter.name
        return {
            said.message_id: self._counted[said.content]
            for said in messages
            if name not in said.token_counts and said.content in self._counted
        }

    async def count(self, needed: Iterable[str], newest_first: Iterable[str | Said], enough_tokens: int) -> None:
        """Count the texts that are `needed`, and of the others the newest until they have `enough_tokens`.

        What is older than those cannot be in the prompt, and keeps its upper bound. Raise `ModelServerError`.
        """
        wanted, others = list(needed), list(newest_first)
        while uncounted := self._uncounted([*wanted, *self._within(others, enough_tokens)]):
            self._counted.update(zip(uncounted, await self.counter.count_texts(uncounted), strict=True))

    def _uncounted(self, texts: Iterable[str]) -> list[str]:
        return [text for text in dict.fromkeys(texts) if text and text not in self._counted]

    def _within(self, newest_first: Iterable[str | Said], enough_tokens: int) -> Iterator[str]:
        """Give the uncounted of the newest that have `enough_tokens`; an uncounted one has as many as is likely."""
        name, tokens = self.counter.name, 0
        for each in newest_first:
            if tokens > enough_tokens:
                return
            text, stored = (each, None) if isinstance(each, str) else (each.content, each.token_counts.get(name))
            if stored is None:
                stored = self._counted.get(text)
            if stored is None:
                yield text
                stored = self.of(text) // _LIKELY_BYTES_PER_TOKEN
            tokens += stored
