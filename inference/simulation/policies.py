"""The ways to choose a replica that are compared."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from inference.prefixes import Prefix
from inference.router import MOST_ORDERED, Candidate, Router


class Policy(Protocol):
    """One worker's way to choose; `Router` is one."""

    def order(self, candidates: Sequence[Candidate], prefix: Prefix, *, hint: str = "") -> list[str]: ...

    def note(self, url: str, prefix: Prefix) -> None: ...

    def forget(self, url: str) -> None: ...


class LeastLoaded:
    """Who has least to do by its weight; among equals, chance."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 -- a policy, no secret

    def order(self, candidates: Sequence[Candidate], prefix: Prefix, *, hint: str = "") -> list[str]:
        loads = [
            (each.in_flight + 1) / each.weight if each.in_flight < each.permits else float("inf") for each in candidates
        ]
        most = sorted(loads)[:MOST_ORDERED][-1]
        drawn = sorted((load, self._random.random(), index) for index, load in enumerate(loads) if load <= most)
        return [candidates[index].url for *_, index in drawn[:MOST_ORDERED]]

    def note(self, url: str, prefix: Prefix) -> None:
        pass

    def forget(self, url: str) -> None:
        pass


class AtRandom(LeastLoaded):
    """Anyone who has room."""

    def order(self, candidates: Sequence[Candidate], prefix: Prefix, *, hint: str = "") -> list[str]:
        free = [each.url for each in candidates if each.in_flight < each.permits]
        return self._random.sample(free, min(MOST_ORDERED, len(free)))


POLICIES: dict[str, Callable[[int], Policy]] = {
    "least loaded": LeastLoaded,
    "random": AtRandom,
    "prefix": lambda _seed: Router(),
}
