"""The replicas as this process sees them, following the catalogue while it changes: who may be asked, and who not."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog

from inference import metrics
from inference.catalog import Catalog, Model, ModelVersion, Replica
from inference.exceptions import UnknownModel
from inference.health import DEFAULT_TIMES, BreakerTimes, Health, HealthState
from inference.metrics import replica_label
from inference.model_server import ModelServer, ServerInfo
from inference.permits import Offer
from inference.replica_state import ReplicaState, why_refused
from inference.router import Candidate, Router
from inference.tgi.errors import ModelServerError, Overloaded, Unreachable

log = structlog.get_logger(__name__)

_OFFERS_SECONDS = 0.05
"""Offers are asked for at every change, and with a thousand replicas cost a millisecond."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often things are looked at and how long they may take, in seconds.

    A replica whose answers all stand still for `silence` is asked for one token, which it has as long to write: so one
    that is wedged is out within 10 s. `stall` is for a single answer, while others of the same replica go forward.
    """

    follow_seconds: float = 1.0
    probe_seconds: float = 2.0
    probe_limit_seconds: float = 4.0
    identity_seconds: float = 30.0
    look_seconds: float = 0.5
    silence_seconds: float = 4.0
    stall_seconds: float = 10.0
    first_token_stall_seconds: float = 20.0
    report_seconds: float = 2.0
    breaker: BreakerTimes = DEFAULT_TIMES


DEFAULT_PACE = Pace()


def _nobody(_url: str) -> int:
    return 0


@dataclass(slots=True)
class Fleet:
    """All replicas of the catalogue, by URL. `follow` makes them those of the day.

    `held` says how many requests a replica has of all workers together, as far as is known. `news` is set where other
    processes should hear of a change soon.
    """

    read_catalog: Callable[[], Catalog]
    connect: Callable[[Replica], ModelServer]
    pace: Pace = DEFAULT_PACE
    held: Callable[[str], int] = _nobody
    router: Router = field(default_factory=Router)
    states: dict[str, ReplicaState] = field(default_factory=dict)
    catalog: Catalog = field(init=False)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _served: dict[str, list[Model]] = field(default_factory=dict)
    _waiting: Counter[str] = field(default_factory=Counter)
    _offers: dict[str, tuple[float, tuple[Offer, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._take_over(self.read_catalog())

    def follow(self) -> None:
        """Take over what the catalogue says now. What streams from a replica that is gone ends by itself."""
        catalog = self.read_catalog()
        if catalog != self.catalog:
            self._take_over(catalog)

    def _take_over(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._note_news()
        wanted: dict[str, tuple[ModelVersion, Replica]] = {}
        self._served = {}
        for model in catalog.models:
            for version in model.versions:
                for replica in version.replicas:
                    wanted.setdefault(replica.url, (version, replica))
            for url in {replica.url for replica in model.replicas}:
                self._served.setdefault(url, []).append(model)
        for url in self.states.keys() - wanted.keys():
            del self.states[url]
            self.router.forget(url)
        for version, replica in wanted.values():
            self._take_over_one(version, replica)

    def _take_over_one(self, version: ModelVersion, replica: Replica) -> None:
        state = self.states.get(replica.url)
        if state is None or state.replica.kind is not replica.kind:
            server, health = self.connect(replica), Health(self.pace.breaker)
            self.states[replica.url] = ReplicaState(replica, version, server, health=health)
            return
        is_pinned_anew = (version.model_id, version.revision) != (state.version.model_id, state.version.revision)
        state.replica, state.version = replica, version
        if is_pinned_anew:
            self.identify(state, state.info)

    def of(self, model: Model) -> list[ReplicaState]:
        """Return the states of a model's replicas, as far as they are still in the catalogue."""
        return [self.states[url] for replica in model.replicas if (url := replica.url) in self.states]

    def current(self, model: Model) -> Model:
        """Return what the model's alias means now; what it meant where it is gone."""
        try:
            return self.catalog.find(model.alias)
        except UnknownModel:
            return model

    def offers(self, model: Model) -> tuple[Offer, ...]:
        """Return where a new job may be sent now. Answers under way that wait for a place come first."""
        if self._waiting[model.alias]:
            return ()
        now = asyncio.get_running_loop().time()
        made_at, offers = self._offers.get(model.alias, (-math.inf, ()))
        if now - made_at >= _OFFERS_SECONDS:
            offers = tuple(Offer(each.url, each.permits) for each in self.candidates(model.replicas))
            self._offers[model.alias] = now, offers
        return offers

    def all_offers(self) -> dict[str, tuple[Offer, ...]]:
        """Return the offers of every model, by alias."""
        return {model.alias: self.offers(model) for model in self.catalog.models}

    def capacity(self) -> dict[str, int]:
        """Return how many requests each model could have at once, by alias; full ones and waiting ones count too."""
        return {
            model.alias: sum(state.most_permits for state in self.of(model) if state.is_available)
            for model in self.catalog.models
        }

    def candidates(self, replicas: tuple[Replica, ...], *, without: frozenset[str] = frozenset()) -> list[Candidate]:
        """Return those of the replicas that may be sent a request now, each with its load.

        A replica that starts slowly is spared only where another one is there to spare it.
        """
        now = asyncio.get_running_loop().time()
        states = [self.states[url] for each in replicas if (url := each.url) in self.states and url not in without]
        usable = [(state, permits) for state in states if (permits := state.permits_now(now))]
        is_spared = any(state.health.state(now) is HealthState.HEALTHY for state, _ in usable)
        return [
            Candidate(
                state.replica.url,
                self._ours(state) + state.foreign_load,
                permits if is_spared else state.most_permits,
                state.replica.weight,
            )
            for state, permits in usable
        ]

    def has_alternative(self, state: ReplicaState) -> bool:
        """Whether every model that the replica serves could do without it now."""
        models = self._served.get(state.replica.url, [])
        return bool(models) and all(
            any(other.is_available for other in self.of(model) if other is not state) for model in models
        )

    @contextmanager
    def waiting_for_a_place(self, model: Model) -> Iterator[None]:
        """Let no new job have what an answer under way waits for."""
        self._waiting[model.alias] += 1
        try:
            yield
        finally:
            self._waiting[model.alias] -= 1

    def answers_waiting(self) -> dict[str, int]:
        """Return how many answers under way wait for a place of each model, by alias."""
        return dict(+self._waiting)

    def note_failure(self, state: ReplicaState, error: ModelServerError, *, answer: int) -> None:
        """Draw the consequences of an answer that failed at a replica."""
        now = asyncio.get_running_loop().time()
        if isinstance(error, Overloaded):
            state.health.pause(now)
            self._offers.clear()
        elif error.retryable:
            state.next_probe_at = now
            if state.health.fail(answer) and self.has_alternative(state):
                self.eject(state, f"Answers fail there in a row: {error}.", needs_trial=True)
            elif isinstance(error, Unreachable):
                self.eject(state, "It cannot be reached.", needs_trial=False)

    def eject(self, state: ReplicaState, why: str, *, needs_trial: bool) -> None:
        """Leave a replica out until a probe, or where it `needs_trial` a real generation, goes well."""
        was_available = state.health.is_available
        state.health.eject(why, asyncio.get_running_loop().time(), needs_trial=needs_trial)
        if was_available:
            self._note_news()
            log.warning("replica_ejected", replica=state.replica.url, why=why)
            reason = "failing" if needs_trial else "unreachable"
            metrics.EJECTIONS.labels(replica_label(state.replica.url), reason).inc()

    def admit(self, state: ReplicaState) -> None:
        """Note that a replica is well."""
        was_available, now = state.health.is_available, asyncio.get_running_loop().time()
        state.health.admit(now)
        if state.health.is_available and not was_available:
            if state.health.state(now) is HealthState.SLOW_START:
                self.router.forget(state.replica.url)
            self._note_news()
            log.info("replica_admitted", replica=state.replica.url)

    def identify(self, state: ReplicaState, info: ServerInfo | None) -> None:
        """Take over what a server says about itself; it may not answer where that is not what its version names."""
        refused = why_refused(state.replica, state.version, info)
        if refused and not state.refused:
            log.error("replica_refused", replica=state.replica.url, why=refused)
            self.router.forget(state.replica.url)
        if (state.info, state.refused) != (info, refused):
            state.info, state.refused = info, refused
            self._note_news()

    def _note_news(self) -> None:
        self._offers.clear()
        self.news.set()

    def note_load(self, state: ReplicaState) -> None:
        """Work out what a server has to do beside our own requests."""
        state.foreign_load = max(0, state.load.total - self._ours(state)) if state.load else 0

    def _ours(self, state: ReplicaState) -> int:
        """Return how many requests of all workers a replica has, as far as is known."""
        return max(state.in_flight, self.held(state.replica.url))
