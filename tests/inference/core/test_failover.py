"""One answer from as many replicas as it takes: whole, byte for byte, or an honest error."""

import asyncio

import pytest

from inference.events import Finished
from inference.failover import EmptyAnswer, Progress
from inference.testing.answers import expected_answer
from inference.tgi import errors
from tests.inference.core.waiting import until
from tests.inference.fleet.replicas import chosen_of, come_back, fleet_of, go_dark, prompt, replicas, text_of, twins_of
from tests.inference.tgi.scripted_server import delta, response_of, scripted_server, stream_of


async def test_a_replica_that_refuses_is_left_for_another(tmp_path):
    async with replicas(2, tmp_path) as fleet:
        await go_dark(fleet.twins[0])
        events = await fleet.answer("Hello")
        assert text_of(events) == expected_answer("Hello")
        assert [chosen.replica.url for chosen in chosen_of(events)] == [fleet.twins[1].url]
        assert chosen_of(events)[0].is_resumed is False


BEFORE_THE_ANSWER = [
    {"kind": "disconnect"},
    {"kind": "stall_headers"},
    {"kind": "status", "status": 500, "body": "oops"},
    {"kind": "html_502"},
    {"kind": "empty_401"},
    {"kind": "overloaded_429"},
    {"kind": "wrong_content_type"},
]
DURING_THE_ANSWER = [
    {"kind": "error", "error_type": "overloaded"},
    {"kind": "error", "error_type": "generation"},
    {"kind": "error", "error_type": "incomplete_generation_stream"},
    {"kind": "stall"},
    {"kind": "stall", "keep_alive": False},
    {"kind": "keep_alives_only"},
    {"kind": "cut", "how": "rst"},
    {"kind": "cut", "how": "fin"},
    {"kind": "cut_mid_character"},
    {"kind": "clean_end"},
    {"kind": "unterminated_end"},
    {"kind": "garbage"},
    {"kind": "invalid_utf8"},
]
OF_FORM = [
    {"kind": "split", "bytes": 1},
    {"kind": "coalesce"},
    {"kind": "drip", "ms": 1},
    {"kind": "line_ending", "ending": "cr"},
    {"kind": "no_space"},
    {"kind": "byte_order_mark"},
    {"kind": "extra_frame"},
    {"kind": "padded_frame", "bytes": 1_048_576, "after": 5},
    {"kind": "delay_headers", "ms": 20},
    {"kind": "delay_first_token", "ms": 20},
]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("fault", BEFORE_THE_ANSWER, ids=str)
async def test_a_fault_before_the_answer_costs_nothing_but_time(tmp_path, fault, count):
    asked = prompt(fault, tokens=12)
    async with replicas(count, tmp_path) as fleet:
        events = await fleet.answer(asked)
    assert text_of(events) == expected_answer(asked)
    assert [chosen.is_resumed for chosen in chosen_of(events)] == [False]
    assert sum(fleet.requests) == 2


@pytest.mark.parametrize("after", [0, 1, 11])
@pytest.mark.parametrize("fault", DURING_THE_ANSWER, ids=str)
async def test_an_answer_that_breaks_goes_on_elsewhere_to_the_same_bytes(tmp_path, fault, after):
    asked = prompt(fault | {"after": after}, tokens=12)
    async with replicas(2, tmp_path) as fleet:
        events = await fleet.answer(asked)
    assert text_of(events) == expected_answer(asked)
    assert isinstance(events[-1], Finished)
    assert sum(fleet.requests) <= 2


@pytest.mark.parametrize("fault", OF_FORM, ids=str)
async def test_a_fault_of_form_is_none(tmp_path, fault):
    asked = prompt(fault, tokens=12)
    async with replicas(2, tmp_path) as fleet:
        events = await fleet.answer(asked)
    assert text_of(events) == expected_answer(asked)
    assert sorted(fleet.requests) == [0, 1]


async def test_a_resumed_answer_says_so_and_who_goes_on(tmp_path):
    asked = prompt({"kind": "cut", "after": 5}, tokens=12)
    async with replicas(2, tmp_path) as fleet:
        events = await fleet.answer(asked)
        urls = {twin.url for twin in fleet.twins}
    first, second = chosen_of(events)
    assert (first.is_resumed, second.is_resumed) == (False, True)
    assert {first.replica.url, second.replica.url} == urls


async def test_an_answer_survives_many_deaths(tmp_path):
    asked = prompt({"kind": "cut", "after": 3, "always": True, "continuations": True}, tokens=40)
    async with replicas(2, tmp_path) as fleet:
        events = await fleet.answer(asked)
    assert text_of(events) == expected_answer(asked)
    assert len(chosen_of(events)) >= 10


async def test_an_answer_begun_by_another_worker_goes_on_from_its_text(tmp_path):
    asked = prompt(tokens=12)
    whole = expected_answer(asked)
    async with replicas(1, tmp_path) as fleet:
        events = await fleet.answer(asked, so_far=Progress(whole[:20], 6))
    assert whole[:20] + text_of(events) == whole


@pytest.mark.parametrize("fault", [{"kind": "plain_422"}, {"kind": "error", "error_type": "validation"}], ids=str)
async def test_a_request_that_is_wrong_itself_is_not_tried_again(tmp_path, fault):
    async with replicas(2, tmp_path) as fleet:
        with pytest.raises(errors.InvalidRequest):
            await fleet.answer(prompt(fault, tokens=12))
        assert sorted(fleet.requests) == [0, 1]


async def test_an_answer_without_text_is_an_error_and_not_asked_for_without_end(tmp_path):
    async with replicas(2, tmp_path) as fleet:
        with pytest.raises(EmptyAnswer):
            await fleet.answer(prompt(text=""))
        assert sum(fleet.requests) <= 4


async def test_answers_that_break_while_the_model_thinks_are_not_asked_for_without_end():
    """What was thought cannot be continued: a server that always dies there would think for ever."""
    frame = delta("")
    frame["choices"][0]["delta"]["reasoning_content"] = "Let me see."
    thinks, tells = stream_of(frame), response_of(200, b'{"model_id": "M"}')

    async def script(exchange):
        await (thinks if exchange.path == "/v1/chat/completions" else tells)(exchange)

    async with scripted_server(script) as server, fleet_of(server) as fleet:
        with pytest.raises(errors.Incomplete):
            await fleet.answer("Hello", patience_seconds=60)


async def without_end(exchange):
    """A frame that never ends."""
    await exchange.start_stream()
    await exchange.send_repeatedly(b"data: " + b"x" * 65_536, every_seconds=0)


async def with_nothing_in_it(exchange):
    """Frames for ever, none of which says anything."""
    await exchange.start_stream()
    await exchange.send_repeatedly(b'data: {"choices":[]}\n\n', every_seconds=0.01)


@pytest.mark.parametrize("endless", [without_end, with_nothing_in_it])
async def test_frames_without_end_are_an_error_of_that_replica_only(endless):
    tells = response_of(200, b'{"model_id": "M"}')

    async def script(exchange):
        await (endless if exchange.path == "/v1/chat/completions" else tells)(exchange)

    async with scripted_server(script) as server, twins_of(1) as (twin,), fleet_of(server, twin) as fleet:
        # Whichever is asked first, after some answers the endless one has been.
        while not any(exchange.path == "/v1/chat/completions" for exchange in server.exchanges):
            assert text_of(await fleet.answer("Hello")) == expected_answer("Hello")
        assert fleet.told(1) == "healthy"


async def test_patience_ends_and_the_last_error_is_told(tmp_path):
    async with replicas(2, tmp_path) as fleet:
        for twin in fleet.twins:
            await go_dark(twin)
        with pytest.raises(errors.Unreachable):
            await fleet.answer("Hello", patience_seconds=0.3)


async def test_text_that_came_before_patience_ended_stays(tmp_path):
    asked = prompt({"kind": "cut", "after": 5}, tokens=12)
    events = []
    async with replicas(1, tmp_path) as fleet:
        with pytest.raises(errors.ModelServerError):
            await fleet.answer(asked, patience_seconds=0, events=events)
    assert text_of(events)
    assert expected_answer(asked).startswith(text_of(events))


async def test_a_fleet_that_refuses_is_asked_at_growing_intervals(tmp_path):
    async with replicas(2, tmp_path) as fleet:
        for twin in fleet.twins:
            twin.switch_on("overloaded_429")
        with pytest.raises(errors.Overloaded):
            await fleet.answer("Hello", patience_seconds=1.0)
        # Pauses of 50, 100, 200, 400 and 800 ms leave time for no more rounds than these.
        assert 2 <= sum(fleet.requests) <= 2 * 6


async def test_a_fleet_that_comes_back_answers(tmp_path):
    async with replicas(1, tmp_path) as fleet:
        await go_dark(fleet.twins[0])
        asking = asyncio.create_task(fleet.answer("Hello", patience_seconds=20))
        await asyncio.sleep(0)
        await come_back(fleet.twins[0])
        assert text_of(await asking) == expected_answer("Hello")


@pytest.mark.parametrize("fault", [[], [{"kind": "cut", "after": 5}], [{"kind": "overloaded_429"}]])
async def test_no_request_counts_as_under_way_after_its_end(tmp_path, fault):
    async with replicas(2, tmp_path) as fleet:
        await fleet.answer(prompt(*fault, tokens=12))
        assert [state.in_flight for state in fleet.fleet.states.values()] == [0, 0]


async def test_closing_the_answer_closes_the_connection(tmp_path):
    async with replicas(1, tmp_path) as fleet:
        asking = asyncio.create_task(fleet.answer(prompt(tokens=5000), max_new_tokens=9000))
        await fleet.twins[0].wait_for(lambda ledger: ledger.records)
        asking.cancel()
        await fleet.twins[0].wait_for(lambda ledger: ledger.records[-1].closed_by == "client")
        await asyncio.wait([asking])
        assert [state.in_flight for state in fleet.fleet.states.values()] == [0]


async def test_the_replica_with_fewer_requests_is_asked(tmp_path):
    async with replicas(2, tmp_path) as fleet:
        asking = []
        for number in range(6):
            asking.append(asyncio.create_task(fleet.answer(prompt(tokens=5000), max_new_tokens=9000)))
            await until(lambda wanted=number + 1: sum(fleet.requests) == wanted)
        assert fleet.requests == [3, 3]
        for each in asking:
            each.cancel()
        await asyncio.wait(asking)
