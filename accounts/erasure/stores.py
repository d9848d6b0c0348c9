"""What holds something of an account, and how it is erased from there. Each app registers its own."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

type Erased = int | Mapping[str, int]
"""How many things were erased; a store of several kinds says so of each."""
type Erase = Callable[[UUID], Erased]


class NotYet(Exception):
    """Something else still needs what the store holds. It is asked again in a while."""


@dataclass(frozen=True, slots=True)
class Store:
    """One store. `after` names those that must hold nothing any more before it is this one's turn."""

    name: str
    erase: Erase
    after: tuple[str, ...] = ()


_stores: dict[str, Store] = {}


def register(name: str, erase: Erase, *, after: Iterable[str] = ()) -> None:
    """Have `erase(user_id)` called, in a transaction, when an account is erased.

    It is called until it says that nothing was erased: it may erase in parts, and must be able to begin again anywhere.
    What cannot be erased now raises, and is tried again later. Names are what the receipt says.
    """
    assert name not in _stores, f"there are two stores called {name}"
    _stores[name] = Store(name, erase, tuple(after))


def all_stores() -> list[Store]:
    """Return every store, each after those that it waits for."""
    ordered: dict[str, Store] = {}

    def place(store: Store) -> None:
        for name in store.after:
            if name in _stores:
                place(_stores[name])
        ordered.setdefault(store.name, store)

    for store in _stores.values():
        place(store)
    return list(ordered.values())


def store_named(name: str) -> Store | None:
    """Return a store, or `None` for one that is no more: it was registered by an earlier version."""
    return _stores.get(name)
