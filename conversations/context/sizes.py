"""How many tokens the texts of a prompt have: as stored, as counted now, or at most."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from conversations.context.material import Said
from inference.token_counting import TokenCounter, upper_bound

_LIKELY_BYTES_PER_TOKEN = 4


@dataclass(slots=True)
class Sizes:
    """Sizes by text, so that what is said twice is counted once. What was not counted has its upper bound."""

    counter: TokenCounter
    _exact: dict[str, int] = field(default_factory=dict)
    _bounds: dict[str, int] = field(default_factory=dict)

    def note_stored(self, messages: Iterable[Said]) -> None:
        """Take over what was counted when the messages were said."""
        name = self.counter.name
        for said in messages:
            count = said.token_counts.get(name)
            if count is not None:
                self._exact[said.content] = count

    def of(self, text: str) -> int:
        """Return how many tokens a text has, at most."""
        size = self._exact.get(text)
        if size is None:
            size = self._bounds.get(text)
        if size is None:
            size = self._bounds[text] = upper_bound(text)
        return size

    def are_exact(self, texts: Iterable[str]) -> bool:
        return all(not text or text in self._exact for text in texts)

    def newly_counted(self, messages: Iterable[Said]) -> dict[UUID, int]:
        """Return the exact counts of messages that had none; nothing where the counter had to guess."""
        if not self.counter.is_exact:
            return {}
        name = self.counter.name
        return {
            said.message_id: self._exact[said.content]
            for said in messages
            if name not in said.token_counts and said.content in self._exact
        }

    async def count(self, needed: Iterable[str], newest_first: Sequence[str], enough_tokens: int) -> None:
        """Count the texts that are `needed`, and of the others the newest until they have `enough_tokens`.

        What is older than those cannot be in the prompt, and keeps its upper bound. Raise `ModelServerError`.
        """
        wanted = list(needed)
        while wanted := self._uncounted([*wanted, *self._within(newest_first, enough_tokens)]):
            self._exact.update(zip(wanted, await self.counter.count_texts(wanted), strict=True))

    def _uncounted(self, texts: Iterable[str]) -> list[str]:
        return [text for text in dict.fromkeys(texts) if text and text not in self._exact]

    def _within(self, newest_first: Sequence[str], enough_tokens: int) -> list[str]:
        """Return the newest that have `enough_tokens`, where those that were not counted have as many as is likely."""
        tokens = 0
        for place, text in enumerate(newest_first):
            if tokens > enough_tokens:
                return list(newest_first[:place])
            tokens += self._exact[text] if text in self._exact else self.of(text) // _LIKELY_BYTES_PER_TOKEN
        return list(newest_first)
