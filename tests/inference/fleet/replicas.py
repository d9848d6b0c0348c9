"""Some twins that serve one model, and the answers that a fleet of them gives."""

import asyncio
import json
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

from foundation.redis import connect_async
from inference.catalog import Catalog, Model, ModelVersion, Replica, ServerKind
from inference.events import Piece
from inference.failover import Chosen, Progress, stream_answer
from inference.fleet import Pace
from inference.health import BreakerTimes
from inference.messages import ChatMessage, ChatRequest, SamplingOptions
from inference.open_fleet import open_fleet
from inference.permits import Permits
from inference.testing.running import running_twin
from inference.testing.settings import TwinSettings
from inference.tgi.transport import Timeouts
from tests.inference.core.jobs import make_job
from tests.inference.core.waiting import until

SHORT = Timeouts(connect_seconds=2, read_seconds=1, first_token_seconds=1, token_seconds=1)
PATIENT = Timeouts(connect_seconds=1, read_seconds=60, first_token_seconds=60, token_seconds=60)
QUICK = Pace(
    follow_seconds=0.02,
    probe_seconds=0.1,
    probe_limit_seconds=1.0,
    identity_seconds=0.2,
    look_seconds=0.02,
    silence_seconds=0.3,
    stall_seconds=0.8,
    first_token_stall_seconds=1.2,
    report_seconds=0.05,
    breaker=BreakerTimes(cool_down=0.2, longest_cool_down=2, slow_start=1.0, blip=0.0, pause=0.02, longest_pause=0.1),
)
NOTHING = Progress("", 0)


def replica_of(server, **fields):
    return Replica(server.url, ServerKind.TGI, **fields)


def catalog_of(*replicas, name="small", **version):
    return Catalog((Model(name, (ModelVersion(name, tuple(replicas), **version),)),), name)


class Replicas:
    """`catalog` may be replaced at any time, or cannot be read for an `error`."""

    def __init__(self, servers, permits):
        self.twins = servers
        self.permits = permits
        self.catalog = catalog_of(*(replica_of(server) for server in servers))
        self.fleet = None
        self.error = None
        self.errors_raised = 0

    def read_catalog(self):
        if self.error:
            self.errors_raised += 1
            raise self.error
        return self.catalog

    @property
    def model(self):
        return self.catalog.models[0]

    def state(self, number):
        return self.fleet.states[self.twins[number].url]

    def told(self, number):
        return self.state(number).reported_state(asyncio.get_running_loop().time())

    async def until_told(self, number, state, *, seconds=10.0):
        await until(lambda: self.told(number) == state, seconds=seconds)

    async def answer(
        self, asked, *, job=None, so_far=NOTHING, patience_seconds=5.0, max_new_tokens=100, events=None, **place
    ):
        """Return every event of one answer; `events` keeps those that came before an error.

        `job` is one that was taken with a permit. `place` may have `prefix`, `hint` and `conversation_key`.
        """
        events = [] if events is None else events

        async def build(_state, progress):
            messages = [ChatMessage("user", asked)]
            if progress.text:
                messages.append(ChatMessage("assistant", progress.text))
            return ChatRequest(tuple(messages), SamplingOptions(max_new_tokens), "request-1")

        permit = self.permits.open(job or make_job(model=self.model.alias))
        answer = stream_answer(
            self.fleet,
            self.model,
            build,
            so_far=so_far,
            permit=permit,
            patience_seconds=patience_seconds,
            **place,
        )
        try:
            async with aclosing(answer):
                async for event in answer:
                    events.append(event)
        finally:
            await permit.release()
        return events

    @property
    def requests(self):
        """How many answers each was asked for; trials are none."""
        return [
            len([r for r in twin.records if r.path == "/v1/chat/completions" and r.prompt != "Hi"])
            for twin in self.twins
        ]


@asynccontextmanager
async def fleet_of(*servers, pace=QUICK, timeouts=SHORT, catalog=None, known=True):
    """A fleet of these servers, once it knows them."""
    async with connect_async() as client:
        replicas = Replicas(servers, Permits(client, "here:1"))
        replicas.catalog = catalog or replicas.catalog
        async with open_fleet(
            replicas.read_catalog, replicas.permits, api_key=None, pace=pace, timeouts=timeouts
        ) as replicas.fleet:
            if known:
                await until(lambda: all(state.is_available for state in replicas.fleet.states.values()))
            yield replicas


@asynccontextmanager
async def twins_of(count, tmp_path=None, **settings):
    wanted = {"token_ms": 1.0, "prefill_ms": 1.0, "keep_alive_ms": 100.0, **settings}
    if tmp_path is not None:
        wanted["firings_dir"] = str(tmp_path)
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(running_twin(TwinSettings(**wanted))) for _ in range(count)]


@asynccontextmanager
async def replicas(count, tmp_path, *, pace=QUICK, timeouts=SHORT, **settings):
    async with twins_of(count, tmp_path, **settings) as twins, fleet_of(*twins, pace=pace, timeouts=timeouts) as fleet:
        yield fleet


async def go_dark(twin):
    """Let a twin be out of reach, over the connections too that clients have kept."""
    await twin.refuse_connections()
    for path in (None, "/health", "/info", "/metrics"):
        twin.switch_on("disconnect", path=path)


async def come_back(twin):
    twin.switch_off()
    await twin.accept_connections()


def prompt(*faults, **wishes):
    return "@twin " + json.dumps(wishes | {"faults": list(faults)}) + "\nTell me more."


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, Piece))


def chosen_of(events):
    return [event for event in events if isinstance(event, Chosen)]
