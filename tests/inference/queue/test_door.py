"""The door lets in what can be answered in time, refuses the least urgent first, and counts everybody once."""

import pytest
import pytest_asyncio

from foundation.ids import new_id
from inference import lua, overload, queue
from inference.jobs import PRIORITY_CLASSES
from inference.overload import FALLBACK_MODEL, OUTPUT_SHORTENED, PATIENCE, TOOLS_DISABLED, Request
from inference.permits import Offer
from tests.inference.core.jobs import URL, make_job, take

PERMITS = 10


def request(priority_class="free", *, model="small", fallback="", generation_id=None, user=None):
    return Request(generation_id or new_id(), user or new_id(), priority_class, model, fallback, 120.0)


def ask(client, priority_class="free", **changes):
    return overload.ask(client, request(priority_class, **changes))


def answers_take(client, seconds, *, model="small"):
    client.hset(f"{lua.base_key()}:service", model, seconds * 1000)


async def there_are(client, **permits):
    """Have a worker report so many permits of each model."""
    await overload.report_capacity(client, "worker", concurrency=1000, permits=permits)


@pytest_asyncio.fixture
async def full(client, sync_client):
    """Ten permits, all in use, and answers of two seconds: what comes now waits, each a fifth of a second more."""
    answers_take(sync_client, 2.0)
    await there_are(client, small=PERMITS)
    queue.enqueue(sync_client, [make_job() for _ in range(PERMITS)])
    await take(client, {"small": (Offer(URL, PERMITS),)}, most=PERMITS)


async def test_while_there_is_room_nobody_waits_and_nothing_is_done_without(client, sync_client):
    await there_are(client, small=PERMITS)
    answers = [ask(sync_client) for _ in range(PERMITS)]
    assert {(each.model, each.expected_wait_seconds, each.steps) for each in answers} == {("small", 0.0, ())}


@pytest.mark.usefixtures("full")
async def test_the_expected_wait_is_what_is_ahead_by_how_fast_answers_end(sync_client):
    queue.enqueue(sync_client, [make_job("plus") for _ in range(4)])
    assert ask(sync_client, "free").expected_wait_seconds == pytest.approx(1.0)
    assert ask(sync_client, "enterprise").expected_wait_seconds == pytest.approx(0.2)


@pytest.mark.usefixtures("full")
async def test_those_who_come_at_once_see_each_other(sync_client):
    answers = [ask(sync_client) for _ in range(500)]
    let_in = [each for each in answers if each.model]
    assert len(let_in) == 10, "two seconds of work are waited for, no more"
    assert all(each.expected_wait_seconds > 2 for each in answers[10:])


@pytest.mark.usefixtures("full")
async def test_one_who_has_much_waiting_leaves_room_for_others(sync_client):
    greedy, other = new_id(), new_id()
    queue.enqueue(sync_client, [make_job(user=greedy) for _ in range(5)])
    assert ask(sync_client, user=greedy).model, "alone, one may have all that may wait"
    queue.enqueue(sync_client, [make_job(user=other)])
    assert ask(sync_client, user=greedy).model is None
    assert ask(sync_client, user=other).model
    assert ask(sync_client, user=new_id()).model


@pytest.mark.usefixtures("full")
async def test_one_that_arrives_in_the_queue_is_counted_once(sync_client):
    generation_id = new_id()
    ask(sync_client, generation_id=generation_id)
    queue.enqueue(sync_client, [make_job(generation_id=generation_id)])
    assert ask(sync_client).expected_wait_seconds == pytest.approx(0.4)


@pytest.mark.usefixtures("full")
async def test_one_that_was_let_in_and_is_taken_back_counts_no_more(sync_client):
    asked = request()
    answer = overload.ask(sync_client, asked)
    overload.leave(sync_client, asked, answer.model)
    assert ask(sync_client).expected_wait_seconds == pytest.approx(0.2)


@pytest.mark.usefixtures("full")
async def test_one_that_was_let_in_and_never_came_is_forgotten(sync_client):
    generation_id = new_id()
    ask(sync_client, generation_id=generation_id)
    door = f"{lua.base_key()}:door:small:2"
    assert 0 < sync_client.pttl(door) <= 10_000
    sync_client.zadd(door, {str(generation_id): 1})
    assert ask(sync_client).expected_wait_seconds == pytest.approx(0.2)


@pytest.mark.usefixtures("full")
async def test_the_less_urgent_a_class_the_sooner_it_is_refused(sync_client):
    refused = []
    while len(refused) < 3:
        for priority_class in PRIORITY_CLASSES[:0:-1]:
            if priority_class not in refused and ask(sync_client, priority_class).model is None:
                refused.append(priority_class)
        queue.enqueue(sync_client, [make_job("enterprise")])
    assert refused == ["background", "free", "plus"]
    assert ask(sync_client, "enterprise").model == "small"


@pytest.mark.usefixtures("full")
async def test_the_most_urgent_class_is_refused_when_its_deadline_could_not_be_kept(sync_client):
    queue.enqueue(sync_client, [make_job("enterprise") for _ in range(355)])
    assert ask(sync_client, "enterprise").model == "small"
    queue.enqueue(sync_client, [make_job("enterprise") for _ in range(10)])
    assert ask(sync_client, "enterprise").model is None


@pytest.mark.usefixtures("full")
async def test_what_is_let_in_has_no_trace_of_those_who_were_refused(sync_client):
    while ask(sync_client).model:
        pass
    before = sync_client.zcard(f"{lua.base_key()}:door:small:2")
    assert ask(sync_client).model is None
    assert sync_client.zcard(f"{lua.base_key()}:door:small:2") == before


async def test_answers_of_a_slow_model_are_waited_for(client, sync_client):
    answers_take(sync_client, 20.0)
    await there_are(client, small=1)
    assert [ask(sync_client).model for _ in range(3)] == ["small", "small", None]


@pytest.mark.usefixtures("full")
async def test_the_answer_is_shortened_before_tools_are_left_out_before_the_message_is_refused(sync_client):
    seen = []
    while (answer := ask(sync_client)).model:
        if answer.steps not in seen:
            seen.append(answer.steps)
    assert seen == [(), (OUTPUT_SHORTENED,), (OUTPUT_SHORTENED, TOOLS_DISABLED)]


@pytest.mark.usefixtures("full")
async def test_a_smaller_model_answers_where_it_is_sooner_ready(client, sync_client):
    await there_are(client, small=PERMITS, tiny=5)
    models = [ask(sync_client, fallback="tiny") for _ in range(12)]
    assert [each.model for each in models[:7]] == ["small"] * 7
    assert models[7].model == "tiny"
    assert models[7].steps == (OUTPUT_SHORTENED, TOOLS_DISABLED, FALLBACK_MODEL)
    assert models[7].expected_wait_seconds == 0.0


@pytest.mark.usefixtures("full")
async def test_a_smaller_model_that_is_busier_does_not(client, sync_client):
    await there_are(client, small=PERMITS, tiny=1)
    answers_take(sync_client, 100.0, model="tiny")
    queue.enqueue(sync_client, [make_job(model="tiny") for _ in range(3)])
    assert {ask(sync_client, fallback="tiny").model for _ in range(12)} == {"small", None}


@pytest.mark.parametrize("priority_class", PRIORITY_CLASSES)
async def test_where_nobody_knows_how_fast_it_goes_only_the_number_is_bounded(sync_client, priority_class):
    most = PATIENCE[priority_class].most_unknown
    queue.enqueue(sync_client, [make_job("enterprise") for _ in range(most - 1)])
    answer = ask(sync_client, priority_class)
    assert (answer.model, answer.expected_wait_seconds) == ("small", None)
    assert ask(sync_client, priority_class).model is None


async def test_a_worker_that_is_gone_is_no_capacity(client, sync_client):
    await there_are(client, small=PERMITS)
    await overload.withdraw_capacity(client, "worker")
    assert ask(sync_client).expected_wait_seconds is None


async def test_no_more_is_expected_of_workers_than_they_write_at_once(client, sync_client):
    answers_take(sync_client, 1.0)
    await overload.report_capacity(client, "one", concurrency=2, permits={"small": 1000})
    await overload.report_capacity(client, "other", concurrency=1, permits={"small": 1000})
    assert [ask(sync_client).expected_wait_seconds > 0 for _ in range(4)] == [False, False, False, True]


async def test_a_place_in_the_queue_comes_with_the_wait_that_is_expected(client, sync_client):
    answers_take(sync_client, 2.0)
    await there_are(client, small=4)
    jobs = [make_job() for _ in range(8)]
    queue.enqueue(sync_client, jobs)
    await take(client, {"small": (Offer(URL, 4),)}, most=4)
    place = await queue.place(client, jobs[-1].generation_id)
    assert (place.position, place.expected_wait_seconds) == (4, 2.0)
