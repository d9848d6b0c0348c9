import pytest

from tests.inference.conformance.raw_http import post


async def test_an_absurd_limit_is_accepted(target):
    response = await target.generate(target.brief, max_new_tokens=100_000, details=True)
    assert response.json()["details"]["finish_reason"] == "eos_token"


async def test_a_prompt_beyond_the_limit_is_refused_with_its_numbers(target):
    info = await target.info()
    inputs = "word " * (info["max_total_tokens"] + 10)
    response = await target.post("/generate", {"inputs": inputs, "parameters": {"max_new_tokens": 1}})
    assert (response.status, response.json()["error_type"]) == (422, "validation")
    assert f"must be <= {info['max_total_tokens']}. Given: " in response.json()["error"]
    assert response.json()["error"].endswith("`inputs` tokens and 1 `max_new_tokens`")


async def test_a_prompt_that_leaves_no_room_for_the_answer_is_refused(target):
    info = await target.info()
    inputs = "word " * (info["max_input_tokens"] - 20)
    response = await target.post("/generate_stream", {"inputs": inputs, "parameters": {"max_new_tokens": 1_024}})
    assert response.frames()[0]["error_type"] == "validation"


async def test_an_answer_goes_on_beyond_1024_tokens_without_a_seam(twin_target):
    body = {"inputs": '@twin {"tokens": 2000, "token_ms": 0}', "parameters": {"max_new_tokens": 1_500, "details": True}}
    frames = (await post(twin_target.url, "/generate_stream", body)).frames()
    assert [frame["index"] for frame in frames] == list(range(1, 1_501))
    assert frames[-1]["details"]["finish_reason"] == "length"
    assert frames[-1]["details"]["generated_tokens"] == 1_500


@pytest.mark.parametrize("truncate", [1, 3])
async def test_truncate_keeps_the_end_of_the_prompt(target, truncate):
    parameters = {"max_new_tokens": 1, "details": True, "truncate": truncate}
    response = await target.post("/generate_stream", {"inputs": "one two three four five", "parameters": parameters})
    assert response.frames()[-1]["details"]["input_length"] == truncate
