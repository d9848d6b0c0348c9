"""What one process believes the replicas' prefix caches to hold."""

from dataclasses import dataclass, field
from itertools import count

from inference.prefixes import BLOCK_ENDS, Prefix

MOST_BLOCKS = 200_000
MOST_HOLDERS = 4
CACHE_BYTES = 2_000_000
"""What a replica's cache is taken to hold: 500,000 tokens, as an 8B model's does beside its weights in 80 GB."""


@dataclass(slots=True)
class _Cache:
    """A replica's cache as two eras, the present one and that before; what neither has touched counts as evicted."""

    present: int
    before: int
    noted_bytes: int = 0


@dataclass(slots=True)
class PrefixTable:
    """Which replicas, 4 at most, hold a block: the 200,000 blocks used last, and of each replica what fits its cache.

    An entry names eras, not replicas, so that what a replica loses at once is lost by forgetting its eras. The blocks
    themselves are kept in two halves that take turns, which costs less memory than an exact order of use.
    """

    most_blocks: int = MOST_BLOCKS
    cache_bytes: int = CACHE_BYTES
    _young: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _old: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _caches: dict[str, _Cache] = field(default_factory=dict)
    _urls: dict[int, str] = field(default_factory=dict)
    _new_eras: "count[int]" = field(default_factory=count)

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def holders(self, prefix: Prefix) -> dict[str, int]:
        """Return how many of the prefix's blocks a replica holds, by URL; of those that hold least, not all."""
        depths: dict[str, int] = {}
        for depth in range(len(prefix), 0, -1):
            for era in self._eras_of(prefix[depth - 1]):
                if (url := self._urls.get(era)) is not None and url not in depths:
                    depths[url] = depth
            if len(depths) >= MOST_HOLDERS:
                break
        return depths

    def note(self, url: str, prefix: Prefix) -> None:
        """A prompt with this prefix has been sent there."""
        cache = self._caches.get(url) or self._open(url)
        begin = 0
        for block, end in zip(prefix, BLOCK_ENDS, strict=False):
            eras = self._eras_of(block)
            if cache.present not in eras:
                others = [era for era in eras if self._urls.get(era, url) != url]
                eras = (cache.present, *others[: MOST_HOLDERS - 1])
                cache.noted_bytes += end - begin
            self._young[block] = eras
            begin = end
        if len(self._young) > self.most_blocks // 2 - len(BLOCK_ENDS):
            self._young, self._old = {}, self._young
        if cache.noted_bytes >= self.cache_bytes // 2:
            self._begin_era(url, cache)

    def forget(self, url: str) -> None:
        """Its cache is empty, or it is gone."""
        if cache := self._caches.pop(url, None):
            self._urls.pop(cache.present, None)
            self._urls.pop(cache.before, None)

    def _eras_of(self, block: int) -> tuple[int, ...]:
        return self._young.get(block) or self._old.get(block) or ()

    def _open(self, url: str) -> _Cache:
        era = next(self._new_eras)
        self._urls[era] = url
        cache = self._caches[url] = _Cache(present=era, before=era)
        return cache

    def _begin_era(self, url: str, cache: _Cache) -> None:
        if cache.before != cache.present:
            del self._urls[cache.before]
        cache.before, cache.present, cache.noted_bytes = cache.present, next(self._new_eras), 0
        self._urls[cache.present] = url
