"""A site with two models."""

import pytest
import pytest_asyncio

from inference.testing.processes import TwinProcess
from inference.testing.settings import TwinSettings
from tests.accounts.factories import make_key, make_user
from tests.api_client import ApiClient
from tests.running_site import RunningSite

MUTE = '@twin {"text": ""}\nGo'
SAY = '@twin {"text": "Hello."}\nGo'


@pytest.fixture(scope="module")
def roomy_site(no_other_worker, django_db_blocker):
    twin = TwinProcess(TwinSettings(token_ms=1, prefill_ms=1))
    with django_db_blocker.unblock():
        site = RunningSite([twin])
        try:
            twin.start()
            site.environment["MODEL_FLEET"] = f"small={twin.url};large={twin.url}"
            site.start_web()
            site.start_worker()
            yield site
        finally:
            site.stop()
            twin.kill()


@pytest.fixture
def erins_secret(transactional_db):
    return make_key(make_user("erin@example.com"))


@pytest_asyncio.fixture
async def erin(erins_secret, roomy_site, http):
    return ApiClient(http, roomy_site.url, erins_secret)


async def test_another_model_can_write_the_other_answer(erin):
    conversation_id = await erin.conversation(model="large")
    events = await erin.send(conversation_id, SAY)
    assert events[0].data["model"] == "large"
    path = f"/v1/messages/{events[0].data['message_id']}/regenerate"
    for asked, used in (("small", "small"), ("auto", "small"), (None, "large")):
        status, answer = await erin.call("POST", path, {"model": asked, "stream": False})
        assert (status, answer["model"], answer["generation"]["model"]) == (200, used, used)
    _, listed = await erin.call("GET", f"/v1/conversations/{conversation_id}/messages?branch=all")
    assert [each["model"] for each in listed["data"]] == [None, "large", "small", "small", "large"]


async def test_a_message_may_name_a_model_of_its_own(erin):
    conversation_id = await erin.conversation(model="large")
    assert (await erin.send(conversation_id, SAY, model="small"))[0].data["model"] == "small"
    assert (await erin.call("GET", f"/v1/conversations/{conversation_id}"))[1]["model"] == "large"


async def test_every_model_is_offered_and_one_is_what_auto_means(erin):
    _, listed = await erin.call("GET", "/v1/models")
    assert [model["id"] for model in listed["data"]] == ["small", "large"]
    assert [model["id"] for model in listed["data"] if model["is_default"]] == ["small"]


async def test_where_a_model_says_nothing_a_call_is_told_when_to_try_again(erin):
    path = f"{erin.url}/v1/conversations/{await erin.conversation()}/messages"
    async with erin.session.post(path, json={"content": MUTE, "stream": False}, headers=erin.headers) as answer:
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) >= 1
        assert "x-ratelimit-remaining-requests" in answer.headers
        error = (await answer.json())["error"]
    assert (error["type"], error["code"]) == ("server_error", "no_capacity")
    _, generation = await erin.call("GET", f"/v1/generations/{error['details']['generation_id']}")
    assert (generation["status"], generation["error"]["code"]) == ("failed", "no_capacity")


async def test_where_a_model_says_nothing_a_stream_ends_with_an_error_that_can_be_retried(erin):
    events = await erin.send(await erin.conversation(), MUTE)
    assert [event.type for event in events[-2:]] == ["error", "done"]
    assert (events[-2].data["code"], events[-2].data["retryable"]) == ("no_capacity", True)
    assert events[-1].data["finish_reason"] == "error"
