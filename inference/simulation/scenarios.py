"""What is simulated: the fleet, its users, and what befalls it."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Scenario:
    """One fleet under one traffic. Tokens are four bytes; times of thinking, lengths and lives vary around their means.

    `busy` is the share of all permits that would be in use if no prompt were ever cached. A worker sees what it sends
    at once, and what the others send when it looks, every `look_seconds`.
    """

    title: str
    replicas: int = 1_000
    conversations: int = 200_000
    seed: int = 1
    workers: int = 8
    look_seconds: float = 1.0
    busy: float = 0.6
    weights: tuple[float, ...] = (1.0,)
    permits: int = 16
    cache_tokens: int = 150_000
    prefill_tokens_per_second: float = 20_000.0
    decode_seconds_per_token: float = 0.015
    slowdown_per_neighbour: float = 0.03
    turns: float = 4.0
    think_seconds: float = 25.0
    question_tokens: float = 80.0
    answer_tokens: float = 250.0
    system_prompts: int = 500
    system_tokens: float = 600.0
    zipf: float = 1.0
    life_seconds: float | None = None
    down_seconds: float = 60.0

    @property
    def total_weight(self) -> float:
        return sum(self.weight(number) for number in range(self.replicas))

    def weight(self, number: int) -> float:
        """Return a replica's weight: it has so many times the permits, the speed and the cache."""
        return self.weights[number % len(self.weights)]

    @property
    def conversations_per_second(self) -> float:
        """Return the rate of new conversations that keeps the fleet as busy as it shall be."""
        neighbours = self.busy * self.permits
        decoding = self.answer_tokens * self.decode_seconds_per_token * (1 + self.slowdown_per_neighbour * neighbours)
        history = self.system_tokens + (self.turns - 1) * (self.question_tokens + self.answer_tokens)
        prefill = (history + self.question_tokens) / self.prefill_tokens_per_second
        # While one prompt is read, a replica's other answers stand still.
        seconds = decoding + prefill * neighbours
        return self.busy * self.permits * self.total_weight / seconds / self.turns


_EVEN = Scenario("even load")
ALL = (
    _EVEN,
    replace(_EVEN, title="hot prefixes", system_prompts=20, system_tokens=4_000.0, zipf=1.3, busy=0.5),
    replace(_EVEN, title="replicas come and go", life_seconds=600.0),
    replace(_EVEN, title="near saturation", busy=1.2),
    replace(_EVEN, title="unequal replicas", weights=(1.0, 1.0, 2.0, 4.0)),
)


def of_size(replicas: int, conversations: int) -> tuple[Scenario, ...]:
    """Return every scenario with so many replicas and conversations, as busy as at full size."""
    return tuple(replace(each, replicas=replicas, conversations=conversations) for each in ALL)
