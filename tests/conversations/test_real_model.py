"""End to end with the real local model: what a newcomer has after `make run`."""

import re
import urllib.request

import aiohttp
import pytest
import pytest_asyncio

from conversations.models import Message
from tests.accounts.factories import make_key, make_user
from tests.api_client import ApiClient, text_of
from tests.local_model import served_model
from tests.running_site import running_site, wait_until

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def model_url():
    with served_model(window_tokens=1024) as url:
        yield url


@pytest.fixture(scope="module")
def real_site(model_url, no_other_worker, django_db_blocker, tmp_path_factory):
    log = tmp_path_factory.mktemp("site") / "log"
    with django_db_blocker.unblock(), running_site(twins=0, log=log, MODEL_FLEET=f"small={model_url}") as site:
        yield site


@pytest.fixture
def ada_secret(real_site, transactional_db):
    return make_key(make_user("ada@example.com", tier="plus"))


@pytest_asyncio.fixture
async def ada(real_site, ada_secret):
    timeout = aiohttp.ClientTimeout(total=240)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        yield ApiClient(session, real_site.url, ada_secret)


def running_answers(model_url):
    with urllib.request.urlopen(f"{model_url}/metrics", timeout=10) as response:
        page = response.read().decode()
    found = re.search(r"^tgi_batch_current_size (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


async def test_a_real_model_answers_and_the_next_turn_reuses_its_prefix(ada):
    conversation_id = await ada.conversation(instructions="Answer in one short sentence.")
    first = await ada.send(conversation_id, "What is the capital of France?", options={"temperature": 0})
    assert "Paris" in text_of(first)
    assert first[-1].data["finish_reason"] == "stop"
    stored = await Message.objects.aget(pk=first[0].data["message_id"])
    assert stored.content == text_of(first)
    assert stored.tokens_in > 20

    second = await ada.send(conversation_id, "What is the capital of Italy?", options={"temperature": 0})
    assert "Rome" in text_of(second)
    used = second[-1].data["usage"]
    assert used["cached"] >= stored.tokens_in, "the first turn's prompt was read again"


async def test_stop_frees_the_model_servers_slot(ada, model_url):
    conversation_id = await ada.conversation()
    async with ada.sending(conversation_id, "Write a very long story about the sea.") as stream:
        events = await stream.until("token", 5)
        assert running_answers(model_url) == 1
        status, _ = await ada.call("POST", f"/v1/generations/{events[0].data['generation_id']}/cancel")
        assert status == 204
        events += await stream.rest()
    wait_until(lambda: running_answers(model_url) == 0, 10, "a free slot")
    stored = await Message.objects.aget(pk=events[0].data["message_id"])
    assert (stored.status, stored.content) == ("cancelled", text_of(events))


async def test_a_long_conversation_never_overruns_the_window(ada):
    conversation_id = await ada.conversation()
    filler = "The quick brown fox jumps over the lazy dog. " * 20
    notices = []
    for turn in range(6):
        events = await ada.send(
            conversation_id, f"{filler} Say only the word {turn}.", options={"max_tokens": 8, "temperature": 0}
        )
        assert events[-1].data["finish_reason"] in ("stop", "length"), events
        notices += [event.data["code"] for event in events if event.type == "notice"]
    assert "context_trimmed" in notices
