async def completions(target, prompts, **more):
    body = {"prompt": prompts, "temperature": 0, "max_tokens": 4, **more}
    return await target.post("/v1/completions", body)


async def test_several_prompts_are_told_apart_by_their_index(target):
    prompts = [await target.prompt(target.endless), await target.prompt(target.brief)]
    body = (await completions(target, prompts, max_tokens=2)).json()
    assert body["object"] == "text_completion"
    assert sorted(choice["index"] for choice in body["choices"]) == [0, 1]
    assert body["usage"]["completion_tokens"] == 4


async def test_a_stream_has_empty_reasons_and_no_usage_until_a_prompts_last_chunk(target):
    response = await completions(target, await target.prompt(target.endless), stream=True)
    *others, last = response.frames()
    assert all(frame["choices"][0]["finish_reason"] == "" and "usage" not in frame for frame in others)
    assert last["choices"][0]["finish_reason"] == "length"
    assert last["usage"]["completion_tokens"] == 4
    assert response.events()[-1] == "[DONE]"


async def test_several_prompts_share_a_stream(target):
    prompts = [await target.prompt(target.endless)] * 2
    frames = (await completions(target, prompts, stream=True)).frames()
    assert sorted(frame["choices"][0]["index"] for frame in frames) == [0] * 4 + [1] * 4


async def test_a_stream_spells_the_end_of_sequence_as_generate_does(target):
    frames = (await completions(target, await target.prompt(target.brief), stream=True, max_tokens=60)).frames()
    assert frames[-1]["choices"][0]["finish_reason"] == "eos_token"


async def test_a_suffix_and_too_many_prompts_are_refused(target):
    suffixed = await completions(target, "x", suffix="y")
    assert (suffixed.status, suffixed.json()["error_type"]) == (422, "suffix not supported")
    crowded = await completions(target, ["x"] * 5)
    assert (crowded.status, crowded.json()["error_type"]) == (422, "batch size exceeded")
