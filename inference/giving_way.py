"""Background work under way at one worker, and its giving way to people who wait."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from inference.cancellation import Cancellation, Why
from inference.permits import Offer, Permit


class GivingWay:
    """What is under way at this worker, as far as it may be interrupted."""

    def __init__(self) -> None:
        self._under_way: list[tuple[Permit, Cancellation]] = []

    @contextmanager
    def opened(self, permit: Permit, cancellation: Cancellation) -> Iterator[None]:
        """Know of a piece of work for as long as it lasts."""
        entry = permit, cancellation
        self._under_way.append(entry)
        try:
            yield
        finally:
            self._under_way.remove(entry)

    def is_possible(self) -> bool:
        """Whether anything here could give way."""
        return any(cancellation.gives_way for _, cancellation in self._under_way)

    def make_room(self, waiting_people: Mapping[str, int], offers: Mapping[str, Sequence[Offer]]) -> None:
        """Interrupt as much work as there are people waiting for its places, the newest first.

        What was interrupted before and still holds its place is on its way out, and counts.
        """
        for alias, count in waiting_people.items():
            urls = {offer.url for offer in offers.get(alias, ())}
            in_the_way = [
                cancellation
                for permit, cancellation in reversed(self._under_way)
                if cancellation.gives_way and permit.url and (permit.url in urls or permit.job.model == alias)
            ]
            going = sum(cancellation.why is not None for cancellation in in_the_way)
            staying = [cancellation for cancellation in in_the_way if cancellation.why is None]
            for cancellation in staying[: max(0, count - going)]:
                cancellation.request(Why.GAVE_WAY)
