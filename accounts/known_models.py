"""The names of the models there are, which an app above this one knows."""

from collections.abc import Callable, Collection, Iterable

_known: list[Callable[[], Collection[str]]] = []


def tell_with(names: Callable[[], Collection[str]]) -> None:
    """Have the names asked for of `names`."""
    _known[:] = [names]


def unknown_among(names: Iterable[str]) -> list[str]:
    """Return the names that no model has."""
    (known,) = _known
    existing = known()
    return [name for name in names if name not in existing]


def all_names() -> list[str]:
    """Return the names of all models, in order."""
    (known,) = _known
    return sorted(known())
