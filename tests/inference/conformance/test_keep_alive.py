from inference.testing.running import running_twin
from inference.testing.settings import TwinSettings
from tests.inference.conformance.raw_http import open_post

FAULT = '@twin {"text": "one two three", "fault": {"kind": "stall", "after": 2}}'


def test_a_comment_comes_every_15_seconds_unless_a_test_shortens_that():
    assert TwinSettings().keep_alive_ms == 15_000


async def test_a_silent_stream_has_comments_and_then_goes_on():
    async with running_twin(TwinSettings(keep_alive_ms=20, token_ms=1, prefill_ms=1)) as twin:
        connection = await open_post(twin.url, "/generate_stream", {"inputs": FAULT})
        await connection.read_head()
        await connection.read_until(b":\n\n:\n\n")
        twin.release()
        response = await connection.read_all()
        await connection.close()
    assert [frame["index"] for frame in response.frames()] == [1, 2, 3, 4]
    assert response.frames()[-1]["generated_text"] == "one two three"


async def test_comments_come_before_the_first_token_too():
    async with running_twin(TwinSettings(keep_alive_ms=20, prefill_ms=70)) as twin:
        connection = await open_post(twin.url, "/generate_stream", {"inputs": '@twin {"text": "late"}'})
        response = await connection.read_all()
        await connection.close()
    assert response.body.startswith(b":\n\n:\n\n:\n\ndata: ")
