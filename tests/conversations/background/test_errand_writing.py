"""A worker writes errands beside answers, is in nobody's way, and leaves none half done."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson
import pytest

from accounts.models import UsageRecord
from conversations.models import Conversation, Errand
from conversations.services import errands
from conversations.services.errand_writing import ErrandWriter
from foundation.database import in_database
from foundation.redis import connect_async
from inference import lua, queue
from inference.cancellation import Cancellations, Stopped
from inference.jobs import BACKGROUND
from inference.permits import Offer
from inference.worker import Worker
from tests.conversations.background.asking import expire_lease, make_errand, read_errand
from tests.inference.core.jobs import make_job
from tests.inference.core.waiting import until
from tests.inference.fleet.replicas import PATIENT, fleet_of, twins_of
from tests.inference.queue.waiting_time import let_pass

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_other_worker")]

LONG = '@twin {"tokens": 40, "token_ms": 50}\nName it'
"""Long enough for a person to come meanwhile."""
RICE = '@twin {"text": "Cooking rice"}\nName it'


@dataclass
class Working:
    """A worker in the test's own loop. People's jobs hold their places until they may end."""

    twin: object
    sync_client: object
    writer: ErrandWriter | None = None
    worker: Worker | None = None
    told: list = field(default_factory=list)
    people: list = field(default_factory=list)
    people_may_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, job, cancellation, permit):
        if job.priority_class == BACKGROUND:
            assert await self.writer.write(job, cancellation, permit)
            return
        self.people.append(job)
        try:
            async with cancellation:
                await self.people_may_end.wait()
        except Stopped:
            return

    async def person(self):
        """Let a person's job come."""
        job = make_job("free")
        await in_database(queue.enqueue, self.sync_client, [job])
        return job


@asynccontextmanager
async def working(sync_client, *, permits=4, drain_seconds=5.0):
    async with twins_of(1) as (twin,), fleet_of(twin, timeouts=PATIENT) as replicas, connect_async() as client:
        working = Working(twin, sync_client)

        async def tell(errand_id):
            working.told.append(errand_id)

        working.writer = ErrandWriter(replicas.fleet, tell)
        offers = {"small": (Offer(twin.url, permits),)}
        working.worker = Worker(
            client, working.handle, Cancellations(), replicas.permits, lambda: offers, 16, drain_seconds
        )
        running = asyncio.create_task(working.worker.run())
        await until(lambda: sync_client.pubsub_numsub(queue.wake_channel())[0][1] == 1)
        try:
            yield working
        finally:
            working.people_may_end.set()
            working.worker.stop()
            async with asyncio.timeout(15):
                await running


async def until_errand(errand_id, status):
    async def is_so():
        return (await in_database(read_errand, errand_id)).status == status

    await until(is_so)
    return await in_database(read_errand, errand_id)


def asked(twin):
    return [record for record in twin.records if record.path == "/v1/chat/completions" and record.prompt != "Hi"]


async def test_what_the_model_writes_is_kept_and_told_and_nobody_pays(sync_client):
    async with working(sync_client) as work:
        errand = await in_database(make_errand, prompt=RICE, max_tokens=33)
        written = await until_errand(errand.pk, "written")
        assert written.text == "Cooking rice"
        await until(lambda: work.told == [errand.pk])
        (record,) = asked(work.twin)
        assert record.body["temperature"] == pytest.approx(0.2)
        assert record.body["max_tokens"] == 33
    assert nothing_is_held(work, sync_client)
    assert not await UsageRecord.objects.aexists()


def nothing_is_held(work, sync_client):
    names = (f"permits:{work.twin.url}", "running:small", "yielding:small")
    return not any(sync_client.zcard(f"{lua.base_key()}:{name}") for name in names)


async def test_an_errand_gives_its_place_to_a_person_and_is_written_afterwards(sync_client):
    async with working(sync_client, permits=1) as work:
        errand = await in_database(make_errand, prompt=LONG)
        await work.twin.wait_for(lambda ledger: any(record.tokens_sent > 2 for record in ledger.records))
        person = await work.person()
        await until(lambda: work.people == [person])
        (first,) = asked(work.twin)
        await until(lambda: not first.is_open)
        assert first.closed_by == "client"
        given_back = await until_errand(errand.pk, "queued")
        assert (given_back.failures, given_back.text) == (0, "")
        assert await in_database(queue.waiting_count, sync_client) == 1
        work.people_may_end.set()
        written = await until_errand(errand.pk, "written")
        assert (written.attempt, written.failures) == (2, 0)
    assert nothing_is_held(work, sync_client)


async def test_while_another_place_is_free_an_errand_stays(sync_client):
    async with working(sync_client, permits=3) as work:
        errand = await in_database(make_errand, prompt=LONG)
        await until(lambda: asked(work.twin))
        await work.person()
        await work.person()
        await until(lambda: len(work.people) == 2)
        assert (await until_errand(errand.pk, "written")).attempt == 1


async def test_an_errand_that_has_waited_long_moves_and_keeps_its_place(sync_client):
    async with working(sync_client, permits=1) as work:
        first = await work.person()
        await until(lambda: work.people == [first])
        errand = await in_database(make_errand, prompt=RICE)
        for _ in range(3):
            await work.person()
        let_pass(sync_client, queue.AGEING_SECONDS * 4)
        work.people_may_end.set()
        assert (await until_errand(errand.pk, "written")).attempt == 1


async def test_a_worker_that_goes_away_gives_its_errands_back(sync_client):
    async with working(sync_client, drain_seconds=0.05) as work:
        errand = await in_database(make_errand, prompt=LONG)
        await until(lambda: asked(work.twin))
        work.worker.stop()
        given_back = await until_errand(errand.pk, "queued")
        assert given_back.failures == 0
    assert nothing_is_held(work, sync_client)
    assert await in_database(queue.waiting_count, sync_client) == 1


async def test_a_conversation_that_is_deleted_meanwhile_ends_its_errand_quietly(sync_client):
    async with working(sync_client) as work:
        errand = await in_database(make_errand, prompt=LONG)
        await until(lambda: asked(work.twin))
        await in_database(Conversation.objects.filter(pk=errand.conversation_id).delete)
        await work.writer.renew()
        (record,) = asked(work.twin)
        await until(lambda: not record.is_open)
        assert record.closed_by == "client"
    assert work.told == []
    assert nothing_is_held(work, sync_client)
    assert not await Errand.objects.aexists()


async def test_a_lease_is_renewed_while_the_model_writes(sync_client):
    async with working(sync_client) as work:
        errand = await in_database(make_errand, prompt=LONG)
        await until(lambda: asked(work.twin))
        await in_database(expire_lease, errand.pk)
        expired = (await in_database(read_errand, errand.pk)).lease_expires_at
        await work.writer.renew()
        assert (await in_database(read_errand, errand.pk)).lease_expires_at > expired


async def test_a_request_that_the_model_cannot_read_has_failed_for_good(sync_client):
    async with working(sync_client):
        errand = await in_database(make_errand, prompt="@twin not json\nName it")
        failed = await until_errand(errand.pk, "failed")
        assert (failed.prompt, failed.failures) == ([], 1)


async def test_a_server_that_breaks_is_a_failure_that_is_tried_again_later(sync_client):
    fault = orjson.dumps({"text": "Rice and beans", "fault": {"kind": "cut", "after": 1, "always": True}}).decode()
    async with working(sync_client):
        errand = await in_database(make_errand, prompt=f"@twin {fault}\nName it")
        queued = await until_failures(errand.pk, 1)
        assert queued.status == "queued"
        assert await in_database(queue.waiting_count, sync_client) == 0


async def until_failures(errand_id, count):
    async def has_failed():
        return (await in_database(read_errand, errand_id)).failures == count

    await until(has_failed)
    return await in_database(read_errand, errand_id)


async def test_an_errand_past_its_deadline_is_not_asked_for_any_more(sync_client, settings):
    settings.BACKGROUND_DEADLINE_SECONDS = -1
    async with working(sync_client) as work:
        errand = await in_database(make_errand, prompt=RICE)
        assert (await until_errand(errand.pk, "failed")).prompt == []
        assert asked(work.twin) == []


async def test_a_job_that_is_no_errand_is_left_to_others(sync_client):
    async with working(sync_client) as work:
        job = make_job(BACKGROUND)
        permit = work.worker.permits.open(job)
        with work.worker.cancellations.opened(job.generation_id) as cancellation:
            assert not await work.writer.write(job, cancellation, permit)
        await permit.release()


async def test_an_errand_taken_twice_is_written_once(sync_client):
    async with working(sync_client) as work:
        errand = await in_database(make_errand, prompt=LONG)
        await until(lambda: asked(work.twin))
        assert await in_database(errands.claim, errand.pk) is None
        await until_errand(errand.pk, "written")
        assert len(asked(work.twin)) == 1
