"""What one process knows of one replica: its requests there, its health, its identity, its load."""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from inference.catalog import SUPPOSED_PERMITS, ModelVersion, Replica, ServerKind
from inference.health import Health, HealthState
from inference.model_server import ModelServer, ServerInfo
from inference.server_load import ServerLoad
from inference.watch import Watch


@dataclass(slots=True)
class ReplicaState:
    """One replica as this process sees it. Times are the event loop's.

    `refused` says why it may not answer at all: it runs another model than its version names. `next_probe_at` and
    `bad_probes` belong to the probes; `quiet_since` is when it last went forward, or began to have something to do.
    """

    replica: Replica
    version: ModelVersion
    server: ModelServer
    info: ServerInfo | None = None
    health: Health = field(default_factory=Health)
    refused: str = ""
    load: ServerLoad | None = None
    foreign_load: int = 0
    next_probe_at: float = -math.inf
    identified_at: float = -math.inf
    bad_probes: int = 0
    is_being_probed: bool = False
    quiet_since: float = -math.inf
    frames_before: int = 0
    watches: set[Watch] = field(default_factory=set)

    @property
    def in_flight(self) -> int:
        """This process's requests there."""
        return len(self.watches)

    @property
    def frames(self) -> int:
        """How many frames of answers it has ever sent to this process; of TGI, each is a token."""
        return self.frames_before + sum(watch.frames for watch in self.watches)

    @property
    def is_available(self) -> bool:
        """Whether it may be given a request at all, be it full or not."""
        return self.health.is_available and not self.refused and not self.replica.is_draining

    @property
    def model_id(self) -> str | None:
        """What a request calls the model: as the server does, or else its version."""
        return self.info.model_id if self.info else self.version.model_id or None

    @property
    def most_permits(self) -> int:
        """How many requests it may ever have at once: what it is given, and no more than it says that it takes."""
        told = self.info.max_concurrent_requests if self.info else None
        return min((count for count in (self.replica.permits, told) if count), default=SUPPOSED_PERMITS)

    def permits_now(self, now: float) -> int:
        """Return how many requests it may have at once: fewer while it starts slowly, none while it must be left."""
        return self.health.permits(self.most_permits, now) if self.is_available else 0

    def reported_state(self, now: float) -> str:
        """Return the one word that says most about it."""
        if self.refused:
            return "refused"
        state = self.health.state(now)
        is_well = state in (HealthState.HEALTHY, HealthState.SLOW_START)
        return "draining" if self.replica.is_draining and is_well else state.value

    @contextmanager
    def watching(self, watch: Watch) -> Iterator[ModelServer]:
        """Count and watch a request while it lasts."""
        if not self.watches:
            self.quiet_since = max(self.quiet_since, watch.sent_at)
        self.watches.add(watch)
        try:
            yield self.server
        finally:
            self.watches.discard(watch)
            self.frames_before += watch.frames
            self.quiet_since = max(self.quiet_since, watch.progressed_at or -math.inf)

    def progressed_at(self) -> float:
        """Return when any of its answers last went forward, or it began to have any."""
        return max([self.quiet_since, *(watch.progressed_at or -math.inf for watch in self.watches)])

    def silent_seconds(self, now: float) -> float:
        """Return for how long it has had requests and has moved none of them, beyond what their prompts need.

        New requests do not make it younger: a wedged server that is sent more and more is silent all the same.
        """
        if all(watch.is_patient for watch in self.watches):
            return 0.0
        prefill_seconds = max((watch.prefill_seconds for watch in self.watches if not watch.has_begun), default=0.0)
        return now - self.progressed_at() - prefill_seconds

    def note_progress(self) -> None:
        """It has answered something else than the requests in flight."""
        self.quiet_since = asyncio.get_running_loop().time()


def why_refused(replica: Replica, version: ModelVersion, info: ServerInfo | None) -> str:
    """Return why a replica may not answer for its version, empty where it may: it must say the pinned model.

    Only TGI tells its revision.
    """
    revision = version.revision if replica.kind is ServerKind.TGI else ""
    if not version.model_id and not revision:
        return ""
    if info is None:
        return "It does not say which model it runs."
    if version.model_id and info.model_id != version.model_id:
        return f"It runs {info.model_id!r} instead of {version.model_id!r}."
    if revision and info.model_sha != revision:
        return f"It runs the revision {info.model_sha!r} instead of {revision!r}."
    return ""
