"""A model server of a simulation: permits, a prefix cache, one prompt read at a time, answers written side by side."""

from collections import OrderedDict
from dataclasses import dataclass, field

from inference.simulation.conversations import Conversation
from inference.simulation.scenarios import Scenario


@dataclass(slots=True)
class Cache:
    """What a replica really holds: parts of prompts, the least recently used evicted first."""

    most_tokens: float
    _tokens: OrderedDict[int, int] = field(default_factory=OrderedDict)
    _sum: int = 0

    def held_tokens(self, segments: list[tuple[int, int]]) -> int:
        """Return how many tokens from the beginning of a prompt on need not be read."""
        held = 0
        for key, tokens in segments:
            if (cached := self._tokens.get(key)) is None:
                break
            held += min(cached, tokens)
        return held

    def store(self, segments: list[tuple[int, int]]) -> None:
        """Keep a prompt; its end is evicted before its beginning."""
        for key, tokens in reversed(segments):
            self._sum += tokens - self._tokens.get(key, 0)
            self._tokens[key] = tokens
            self._tokens.move_to_end(key)
        while self._sum > self.most_tokens:
            _, tokens = self._tokens.popitem(last=False)
            self._sum -= tokens

    def clear(self) -> None:
        self._tokens.clear()
        self._sum = 0


@dataclass(slots=True, eq=False)
class Request:
    """One turn on its way. `tries` tells the present try from those before it, whose events are void."""

    conversation: Conversation
    worker: int
    asked_at: float
    remaining_tokens: int
    replica: "SimulatedReplica | None" = None
    tries: int = 0
    first_token_at: float | None = None
    ends_at: float = 0.0
    read_seconds_seen: float = 0.0

    def interrupt(self, now: float) -> None:
        """Leave the replica with the part of the answer that it has written."""
        self.tries += 1
        if self.first_token_at is None or self.first_token_at > now:
            self.first_token_at = None
        elif self.ends_at > now:
            share = (self.ends_at - now) / (self.ends_at - self.first_token_at)
            self.remaining_tokens = max(1, round(self.remaining_tokens * min(1.0, share)))


@dataclass(slots=True)
class SimulatedReplica:
    """One server. `read_seconds` counts all the time that it has read prompts, when every answer stands still."""

    url: str
    scenario: Scenario
    weight: float
    cache: Cache
    permits: int
    is_up: bool = True
    running: set[Request] = field(default_factory=set)
    read_until: float = 0.0
    read_seconds: float = 0.0

    @property
    def has_room(self) -> bool:
        return self.is_up and len(self.running) < self.permits

    def begin(self, request: Request, now: float) -> None:
        """Take a request; its answer ends at `ends_at`, were no further prompt read meanwhile."""
        scenario, prompt = self.scenario, request.conversation.prompt()
        unread = sum(tokens for _, tokens in prompt) - self.cache.held_tokens(prompt)
        self.cache.store(prompt)
        seconds = unread / (scenario.prefill_tokens_per_second * self.weight)
        self.read_until = max(now, self.read_until) + seconds
        self.read_seconds += seconds
        self.running.add(request)
        request.replica, request.read_seconds_seen = self, self.read_seconds
        per_token = scenario.decode_seconds_per_token * (
            1 + scenario.slowdown_per_neighbour * len(self.running) / self.weight
        )
        if request.first_token_at is None:
            request.first_token_at = self.read_until + per_token
        request.ends_at = self.read_until + request.remaining_tokens * per_token

    def holds(self, history: list[tuple[int, int]]) -> bool:
        """Return whether nine tenths of it, or more, need not be read."""
        return self.is_up and self.cache.held_tokens(history) >= 0.9 * sum(tokens for _, tokens in history)

    def end(self, request: Request) -> None:
        """Give the permit back and keep what was said."""
        self.running.discard(request)
        self.cache.store(request.conversation.history(request.conversation.asked))

    def delay(self, request: Request) -> float:
        """Return how long the request has stood still, since it was last asked, for prompts of others."""
        seconds, request.read_seconds_seen = self.read_seconds - request.read_seconds_seen, self.read_seconds
        return seconds

    def stop(self, now: float) -> list[Request]:
        """Lose everything and return the requests that must go elsewhere."""
        lost = sorted(self.running, key=lambda each: each.asked_at)
        for request in lost:
            request.interrupt(now)
        self.running.clear()
        self.cache.clear()
        self.is_up, self.read_until = False, 0.0
        return lost
