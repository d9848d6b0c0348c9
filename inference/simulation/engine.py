"""A simulation's course: events in the order of virtual time."""

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from random import Random

from inference.router import Candidate
from inference.simulation.conversations import Conversation, conversations_of
from inference.simulation.policies import Policy
from inference.simulation.replicas import Cache, Request, SimulatedReplica
from inference.simulation.results import Results
from inference.simulation.scenarios import Scenario

_WARM_UP_SHARE = 0.5
"""Caches and conversations begin empty: what is asked in the first part of the time is not counted."""


def simulate(scenario: Scenario, make_policy: Callable[[int], Policy]) -> Results:
    """Lead every conversation to its end and return what was measured."""
    return _Course(scenario, make_policy).run()


class _Worker:
    """One worker: its policy, and the fleet as it last saw it."""

    def __init__(self, policy: Policy, replicas: list[SimulatedReplica]) -> None:
        self.policy = policy
        self._replicas = replicas
        self.view = [_seen(replica) for replica in replicas]

    def look(self, indexes: Iterable[int] | None = None) -> None:
        """See these replicas, or all, as they are."""
        for index in range(len(self._replicas)) if indexes is None else indexes:
            replica, known = self._replicas[index], self.view[index]
            if known.in_flight != len(replica.running) or (known.permits > 0) != replica.is_up:
                self.view[index] = _seen(replica)

    def count(self, index: int, change: int) -> None:
        """Count what it has itself sent or seen end."""
        known = self.view[index]
        self.view[index] = Candidate(known.url, max(0, known.in_flight + change), known.permits, known.weight)

    def choose(self, request: Request) -> list[str]:
        conversation = request.conversation
        return self.policy.order(self.view, conversation.prefix(), hint=conversation.written_by)


def _seen(replica: SimulatedReplica) -> Candidate:
    return Candidate(replica.url, len(replica.running), replica.permits if replica.is_up else 0, replica.weight)


class _Course:
    def __init__(self, scenario: Scenario, make_policy: Callable[[int], Policy]) -> None:
        self._scenario = scenario
        self._replicas = [_replica(scenario, number) for number in range(scenario.replicas)]
        self._indexes = {replica.url: index for index, replica in enumerate(self._replicas)}
        self._workers = [_Worker(make_policy(number), self._replicas) for number in range(scenario.workers)]
        self._arrivals = conversations_of(scenario)
        self._horizon = scenario.conversations / scenario.conversations_per_second
        self._random = Random(scenario.seed)  # noqa: S311 -- when replicas die, no secret
        self._waiting: deque[Request] = deque()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = count()
        self._now = 0.0
        self._results = Results()

    def run(self) -> Results:
        self._arrive()
        self._look()
        if self._scenario.life_seconds:
            for index in range(len(self._replicas)):
                self._after(self._random.expovariate(1 / self._scenario.life_seconds), partial(self._stop, index))
        while self._events:
            self._now, _, event = heapq.heappop(self._events)
            event()
        return self._results

    @property
    def _is_measured(self) -> bool:
        return _WARM_UP_SHARE * self._horizon <= self._now <= self._horizon

    def _after(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now + seconds, next(self._sequence), event))

    def _arrive(self) -> None:
        conversation = next(self._arrivals, None)
        if conversation is None:
            self._horizon = min(self._horizon, self._now)
            return
        self._after(conversation.begins - self._now, partial(self._begin, conversation))

    def _begin(self, conversation: Conversation) -> None:
        self._ask(conversation)
        self._arrive()

    def _ask(self, conversation: Conversation) -> None:
        conversation.asked += 1
        worker = (conversation.number + 3 * conversation.asked) % len(self._workers)
        request = Request(conversation, worker, self._now, conversation.turn.answer_tokens)
        if self._waiting or not self._send(request):
            self._waiting.append(request)

    def _send(self, request: Request) -> bool:
        """Give the request to the best replica that has room; where all that the worker knows are full, look again."""
        worker = self._workers[request.worker]
        for has_looked in (False, True):
            if has_looked:
                worker.look()
            # Asking for a permit tells how many are in use at each replica that is asked.
            chosen = [self._indexes[url] for url in worker.choose(request)]
            worker.look(chosen)
            if (index := next((each for each in chosen if self._replicas[each].has_room), None)) is not None:
                self._start(request, index)
                return True
        return False

    def _start(self, request: Request, index: int) -> None:
        replica, worker = self._replicas[index], self._workers[request.worker]
        if request.conversation.asked > 1 and request.tries == 0 and self._is_measured:
            self._note_warmth(request.conversation, replica)
        replica.begin(request, self._now)
        worker.count(index, +1)
        worker.policy.note(replica.url, request.conversation.prefix())
        self._after(request.ends_at - self._now, partial(self._end, request, request.tries, index))

    def _note_warmth(self, conversation: Conversation, replica: SimulatedReplica) -> None:
        history = conversation.history(conversation.asked - 1)
        before = self._replicas[self._indexes[conversation.written_by]]
        self._results.note_follow_up(is_warm=replica.holds(history), could_be_warm=before.holds(history))

    def _end(self, request: Request, tries: int, index: int) -> None:
        if request.tries != tries:
            return
        replica, conversation = self._replicas[index], request.conversation
        if (seconds := replica.delay(request)) > 0:
            request.ends_at = self._now + seconds
            self._after(seconds, partial(self._end, request, tries, index))
            return
        replica.end(request)
        self._workers[request.worker].count(index, -1)
        conversation.written_by = replica.url
        if request.first_token_at is not None and _WARM_UP_SHARE * self._horizon <= request.asked_at <= self._horizon:
            self._results.note_answer(request.first_token_at - request.asked_at, self._now - request.asked_at)
        if conversation.asked < len(conversation.turns) and self._now < self._horizon:
            self._after(conversation.turns[conversation.asked].think_seconds, partial(self._ask, conversation))
        self._send_waiting()

    def _send_waiting(self) -> None:
        while self._waiting and self._send(self._waiting[0]):
            self._waiting.popleft()

    def _stop(self, index: int) -> None:
        if self._now > self._horizon:
            return
        replica = self._replicas[index]
        lost = replica.stop(self._now)
        for worker in self._workers:
            worker.policy.forget(replica.url)
            worker.look()
        self._waiting.extendleft(reversed(lost))
        self._send_waiting()
        self._after(self._scenario.down_seconds, partial(self._come_back, index))

    def _come_back(self, index: int) -> None:
        self._replicas[index].is_up = True
        self._send_waiting()
        if self._scenario.life_seconds:
            self._after(self._random.expovariate(1 / self._scenario.life_seconds), partial(self._stop, index))

    def _look(self) -> None:
        for worker in self._workers:
            worker.look()
        if self._is_measured:
            self._results.note_loads([len(each.running) / each.permits for each in self._replicas if each.is_up])
        if self._now < self._horizon:
            self._after(self._scenario.look_seconds, self._look)


def _replica(scenario: Scenario, number: int) -> SimulatedReplica:
    weight = scenario.weight(number)
    return SimulatedReplica(
        url=f"http://replica-{number}",
        scenario=scenario,
        weight=weight,
        cache=Cache(scenario.cache_tokens * weight),
        permits=round(scenario.permits * weight),
    )
