"""Which replica answers: the one that holds the prompt's beginning, unless it has too much to do already."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from inference.catalog import Model, ModelVersion
from inference.prefix_table import PrefixTable
from inference.prefixes import Prefix

MOST_ORDERED = 8
"""How many replicas a decision names: where none of so many takes the request, it is time to decide again."""
LOAD_RATIO = 2.0
LOAD_SLACK = 8.0
_LEAST_WEIGHT = 1e-6
_MOST_SEEDS = 10_000
_MOST_DRAWN = 32
_MOST_CONSIDERED = 128


@dataclass(frozen=True, slots=True)
class Candidate:
    """A replica that may take the request: `in_flight` of its `permits` are in use, over all workers."""

    url: str
    in_flight: float
    permits: int
    weight: float


class Router:
    """One worker's choices. Bounded in memory; the same calls in the same order give the same answers anywhere."""

    def __init__(self) -> None:
        self._table = PrefixTable()
        self._seeds = _Seeds()
        self._decisions = 0

    def order(self, candidates: Sequence[Candidate], prefix: Prefix, *, hint: str = "") -> list[str]:
        """Return URLs, best first, 8 at most: who holds most of the prefix, then who has least to do.

        A replica's load is what it would have in flight with this request, divided by its weight. One that holds the
        whole prefix is passed over where that is more than twice the least plus 8, one that holds less of it
        sooner; one without a free permit comes last. `hint` is the replica that wrote the previous answer: it is taken
        to hold all but the end, as far as the table does not know better.
        """
        self._decisions += 1
        shares = self._shares(prefix, hint)
        considered = self._considered(candidates, shares)
        loads = [
            (each.in_flight + 1) / (each.weight or _LEAST_WEIGHT) if each.in_flight < each.permits else math.inf
            for each in considered
        ]
        key = _mixed(prefix[0] if prefix else self._decisions)
        warm, cold = self._warm(considered, loads, shares, key), self._least_loaded(considered, loads, key)
        return list(dict.fromkeys(considered[index].url for index in warm + cold))[:MOST_ORDERED]

    def note(self, url: str, prefix: Prefix) -> None:
        """A request with this prefix has been sent there."""
        self._table.note(url, prefix)

    def forget(self, url: str) -> None:
        """The replica's cache is empty, or the replica is gone."""
        self._table.forget(url)

    def held(self, url: str, prefix: Prefix) -> int:
        """Return how many of the prefix's blocks a replica holds, as far as is known."""
        return self._table.holders(prefix).get(url, 0)

    def _considered(self, candidates: Sequence[Candidate], shares: dict[str, float]) -> Sequence[Candidate]:
        """Return who may be warm, and of a large fleet some others that differ from decision to decision.

        The least loaded of 128 is hardly worse than that of a thousand, costs a fifth, and is not the one that all
        workers, each knowing what the fleet was like a moment ago, would rush to.
        """
        if len(candidates) <= _MOST_CONSIDERED:
            return candidates
        start = _mixed(self._decisions) % len(candidates)
        some = [
            *candidates[start : start + _MOST_CONSIDERED],
            *candidates[: max(0, start + _MOST_CONSIDERED - len(candidates))],
        ]
        considered = [each for each in candidates if each.url in shares]
        considered += [each for each in some if each.url not in shares]
        free = sum(each.in_flight < each.permits for each in considered)
        return considered if free >= MOST_ORDERED else candidates

    def _shares(self, prefix: Prefix, hint: str) -> dict[str, float]:
        """Return what share of the prefix each replica holds, as far as is known, by URL."""
        shares = {url: depth / len(prefix) for url, depth in self._table.holders(prefix).items()}
        if hint:
            shares[hint] = max(shares.get(hint, 0.0), 1 - 1 / (len(prefix) + 2))
        return shares

    def _warm(
        self, candidates: Sequence[Candidate], loads: list[float], shares: dict[str, float], key: int
    ) -> list[int]:
        if not shares or not loads:
            return []
        least = min(loads)
        found: list[tuple[float, float, float, int]] = []
        for index in [index for index, each in enumerate(candidates) if each.url in shares]:
            each, load, share = candidates[index], loads[index], shares[candidates[index].url]
            slack = (LOAD_RATIO - 1) * least + LOAD_SLACK / (each.weight or _LEAST_WEIGHT)
            if load < math.inf and load <= least + share * slack:
                found.append((-share, load, self._draw(each, key), index))
        return [index for *_, index in sorted(found)]

    def _least_loaded(self, candidates: Sequence[Candidate], loads: list[float], key: int) -> list[int]:
        """Return the indexes of the least loaded; among equals, rendezvous hashing decides."""
        if not loads:
            return []
        most = sorted(loads)[:MOST_ORDERED][-1]
        below = [index for index, load in enumerate(loads) if load < most]
        level = self._nearest(candidates, [index for index, load in enumerate(loads) if load == most], key)
        drawn = sorted((loads[index], self._draw(candidates[index], key), index) for index in below + level)
        return [index for *_, index in drawn[:MOST_ORDERED]]

    def _nearest(self, candidates: Sequence[Candidate], indexes: list[int], key: int) -> list[int]:
        # A draw costs a microsecond: too much for each of a thousand idle replicas. The distance of the hashes picks
        # the same few for the same key just as well; the evenness and the weights that it lacks, the draw has.
        if len(indexes) <= _MOST_DRAWN:
            return indexes
        seeds = self._seeds
        distances = [seeds[candidates[index].url] ^ key for index in indexes]
        furthest = sorted(distances)[_MOST_DRAWN - 1]
        return [index for index, distance in zip(indexes, distances, strict=True) if distance <= furthest]

    def _draw(self, candidate: Candidate, key: int) -> float:
        return _arrival(_mixed(self._seeds[candidate.url] ^ key), candidate.weight)


class _Seeds(dict[str, int]):
    """The hash of each URL."""

    def __missing__(self, url: str) -> int:
        if len(self) >= _MOST_SEEDS:
            self.clear()
        seed = self[url] = _hash(url.encode())
        return seed


def versions_in_order(model: Model, key: bytes) -> tuple[ModelVersion, ...]:
    """Return an alias's versions, the one for this conversation first, shares as their weights say.

    A conversation keeps its version while the weights stay, and a changed weight moves only what it must. Versions of
    weight 0 come last: they answer only where no other can.
    """

    def draw(version: ModelVersion) -> tuple[bool, float]:
        drawn = _hash(version.name.encode(), key)
        return version.weight <= 0, _arrival(drawn, version.weight or 1)

    return tuple(sorted(model.versions, key=draw))


def _hash(data: bytes, key: bytes = b"") -> int:
    return int.from_bytes(blake2b(len(key).to_bytes(4) + key + data, digest_size=8).digest())


def _mixed(number: int) -> int:
    """Return 64 well-mixed bits: the end of splitmix64."""
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return number ^ (number >> 31)


def _arrival(bits: int, weight: float) -> float:
    """Return when a Poisson process of this rate first rings: who rings first is chosen with a chance by its weight.

    Weighted rendezvous hashing; https://datatracker.ietf.org/doc/draft-ietf-bess-weighted-hrw/
    """
    return -math.log((bits + 1) / 2.0**64) / (weight if weight > 0 else _LEAST_WEIGHT)
