"""What is read of a server's own numbers."""

import pytest

from inference.openai_compatible import OpenAICompatibleClient
from inference.server_load import ServerLoad, parse_load
from inference.testing.running import running_twin
from inference.testing.settings import TwinSettings
from inference.tgi.client import TGIClient, model_session
from inference.tgi.errors import Misbehaved
from tests.inference.tgi.asking import ask


@pytest.mark.parametrize(
    ("text", "load"),
    [
        ("tgi_queue_size 3\ntgi_batch_current_size 5\n", ServerLoad(5, 3)),
        ("# TYPE tgi_queue_size gauge\ntgi_batch_current_size 5", ServerLoad(5, 0)),
        ('vllm:num_requests_running{engine="0"} 2.0\nvllm:num_requests_waiting{engine="0"} 1.0\n', ServerLoad(2, 1)),
        (
            'sglang:num_running_reqs{dp="0"} 2\nsglang:num_running_reqs{dp="1"} 3\nsglang:num_queue_reqs 4\n',
            ServerLoad(5, 4),
        ),
        ("llamacpp:requests_processing 1\nllamacpp:requests_deferred 0\n", ServerLoad(1, 0)),
        ("tgi_queue_size 1e2\n", ServerLoad(0, 100)),
        ("", None),
        ("tgi_queue_size_total 3\nxtgi_queue_size 4\n", None),
        ("tgi_queue_size NaN\n", None),
        ("tgi_queue_size 1.2.3\n", None),
        ("<html>tgi_queue_size 3</html>", None),
    ],
)
def test_the_gauges_of_every_server_are_known(text, load):
    assert parse_load(text.encode()) == load


def test_bytes_that_are_no_text_say_nothing():
    assert parse_load(b"\xff\xfe\x00tgi_queue_size\x00") is None


async def test_a_server_tells_its_load_once_it_was_asked_something():
    async with running_twin(TwinSettings(token_ms=1)) as twin, model_session() as session:
        client = TGIClient(twin.url, session=session)
        assert await client.load() is None
        await ask(client)
        assert await client.load() == ServerLoad(0, 0)
        twin.switch_on("huge_metrics", path="/metrics", bytes=1_000_000)
        assert await client.load() == ServerLoad(0, 0)


async def test_an_openai_compatible_server_tells_its_load_too():
    async with running_twin(TwinSettings(dialect="openai")) as twin, model_session() as session:
        assert await OpenAICompatibleClient(twin.url, session=session).load() == ServerLoad(0, 0)


async def test_a_scrape_that_is_out_of_all_measure_is_refused():
    async with running_twin() as twin, model_session() as session:
        twin.switch_on("huge_metrics", path="/metrics", bytes=3_000_000)
        with pytest.raises(Misbehaved):
            await TGIClient(twin.url, session=session).load()
