"""What came of an import: counts, and each conversation by itself as far as there is room."""

from dataclasses import dataclass, field
from typing import Any

from conversations.services.imports.documents import Refused
from conversations.services.imports.incoming import Incoming
from conversations.services.imports.storing import Stored
from foundation.text import made_storable, truncated

MOST_LISTED = 2_000
_MOST_TITLE_CHARACTERS = 80
ALREADY_THERE = "It is there already."


@dataclass(slots=True)
class Report:
    """Grows with the import. Its JSON is what `GET /v1/imports/{import_id}` shows."""

    imported: int = 0
    skipped: int = 0
    refused: int = 0
    conversations: list[dict[str, Any]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.imported + self.skipped + self.refused

    def add_stored(self, incoming: Incoming, stored: Stored) -> None:
        """Note a conversation that is there now."""
        if stored.is_new:
            self.imported += 1
        else:
            self.skipped += 1
        outcome, reason = ("imported", None) if stored.is_new else ("skipped", ALREADY_THERE)
        self._list(incoming.title, outcome, reason, str(stored.conversation_id))

    def add_refused(self, refused: Refused) -> None:
        """Note a conversation that could not be imported."""
        self.refused += 1
        self._list(refused.title, "refused", refused.reason, None)

    def as_json(self, error: str | None = None) -> dict[str, Any]:
        return {
            "imported": self.imported,
            "skipped": self.skipped,
            "refused": self.refused,
            "error": error,
            "conversations": self.conversations,
            "not_listed": self.total - len(self.conversations),
        }

    def _list(self, title: str, outcome: str, reason: str | None, conversation_id: str | None) -> None:
        if len(self.conversations) < MOST_LISTED:
            shown = truncated(made_storable(title), _MOST_TITLE_CHARACTERS)
            self.conversations.append(
                {"title": shown, "outcome": outcome, "reason": reason, "conversation_id": conversation_id}
            )
