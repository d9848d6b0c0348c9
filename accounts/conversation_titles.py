"""What conversations are called. This app knows only their ids; the app that keeps them says."""

from collections.abc import Callable, Collection, Mapping
from uuid import UUID

type Titles = Callable[[UUID, Collection[UUID]], Mapping[UUID, str]]
"""Given a user and ids, the titles of those that are there and the user's; `""` for one without."""

_sources: list[Titles] = []


def register(titles: Titles) -> None:
    """Have this asked for titles."""
    _sources.append(titles)


def titles_of(user_id: UUID, conversation_ids: Collection[UUID]) -> dict[UUID, str]:
    """Return the titles of those of the conversations that are there."""
    return {each: title for source in _sources for each, title in source(user_id, conversation_ids).items()}
