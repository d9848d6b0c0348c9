import pytest

HEADERS = [
    "x-compute-type", "x-compute-time", "x-compute-characters", "x-total-time", "x-validation-time", "x-queue-time",
    "x-inference-time", "x-time-per-token", "x-prompt-tokens", "x-generated-tokens",
]  # fmt: skip


async def test_generate_gives_an_object_and_the_root_an_array_of_it(target):
    bare = (await target.generate(target.brief, max_new_tokens=4)).json()
    listed = (await target.generate(target.brief, path="/", max_new_tokens=4, return_full_text=False)).json()
    assert list(bare) == ["generated_text"]
    assert listed == [bare]


async def test_the_root_gives_the_prompt_too_unless_that_is_refused(target):
    prompt = await target.prompt(target.brief)
    (full,) = (await target.generate(target.brief, path="/", max_new_tokens=2)).json()
    assert full["generated_text"].startswith(prompt)
    (rest,) = (await target.generate(target.brief, path="/", max_new_tokens=2, return_full_text=False)).json()
    assert full["generated_text"] == prompt + rest["generated_text"]


async def test_generate_gives_the_prompt_too_if_asked(target):
    prompt = await target.prompt(target.brief)
    full = (await target.generate(target.brief, max_new_tokens=2, return_full_text=True)).json()
    assert full["generated_text"].startswith(prompt)


async def test_details_count_the_tokens_that_they_list(target):
    body = (await target.generate(target.endless, max_new_tokens=5, details=True)).json()
    details = body["details"]
    assert [key for key in details if key != "top_tokens"] == [
        "finish_reason", "generated_tokens", "seed", "prefill", "tokens",
    ]  # fmt: skip
    assert details["generated_tokens"] == len(details["tokens"]) == 5
    assert details["finish_reason"] == "length"
    assert details["prefill"] == []
    assert all(list(token) == ["id", "text", "logprob", "special"] for token in details["tokens"])
    assert "".join(token["text"] for token in details["tokens"]) == body["generated_text"]


async def test_the_ten_headers_are_there_and_are_numbers(target):
    response = await target.generate(target.endless, max_new_tokens=3)
    assert set(HEADERS) <= set(response.headers)
    assert all(float(response.headers[name]) >= 0 for name in HEADERS if name != "x-compute-type")
    assert response.headers["x-generated-tokens"] == "3"
    assert int(response.headers["x-compute-characters"]) == len(await target.prompt(target.endless))
    assert int(response.headers["x-prompt-tokens"]) > 0


async def test_an_error_has_none_of_the_headers(target):
    response = await target.post("/generate", {"inputs": ""})
    assert not set(HEADERS) & set(response.headers)


async def test_greedy_decoding_names_no_seed_and_sampling_does(target):
    greedy = (await target.generate(target.brief, max_new_tokens=2, details=True)).json()
    sampled = (await target.generate(target.brief, max_new_tokens=2, details=True, do_sample=True, seed=7)).json()
    assert greedy["details"]["seed"] is None
    assert sampled["details"]["seed"] == 7


async def test_the_same_greedy_request_is_answered_alike(target):
    first, second = [
        (await target.generate(target.endless, max_new_tokens=6)).json()["generated_text"] for _ in range(2)
    ]
    assert first == second


async def test_one_token_ends_for_its_length(target):
    details = (await target.generate(target.endless, max_new_tokens=1, details=True)).json()["details"]
    assert (details["finish_reason"], details["generated_tokens"]) == ("length", 1)


async def test_an_end_of_sequence_is_a_last_special_token_and_is_counted(target):
    body = (await target.generate(target.brief, max_new_tokens=60, details=True)).json()
    details = body["details"]
    assert details["finish_reason"] == "eos_token"
    assert details["tokens"][-1]["special"] is True
    assert details["tokens"][-1]["text"] not in body["generated_text"]
    assert details["generated_tokens"] == len(details["tokens"])


async def test_a_stop_string_stays_in_the_text_and_is_the_reason(target):
    words = (await target.generate(target.endless, max_new_tokens=12, details=True)).json()["details"]["tokens"]
    stop = words[0]["text"] + words[1]["text"] + words[2]["text"]
    body = (await target.generate(target.endless, max_new_tokens=12, details=True, stop=[stop])).json()
    assert body["details"]["finish_reason"] == "stop_sequence"
    assert body["generated_text"].endswith(stop)
    assert body["details"]["generated_tokens"] == 3


@pytest.fixture
def cloud_target(target):
    """The routes of two clouds, which the embedded server does without."""
    if target.name == "local":
        pytest.skip("the embedded server has no cloud's routes")
    return target


async def test_vertex_wraps_documents_in_predictions(cloud_target):
    prompt = await cloud_target.prompt(cloud_target.endless)
    instances = [{"inputs": prompt, "parameters": {"max_new_tokens": 2}}] * 2
    answer = await cloud_target.post("/vertex", {"instances": instances})
    text = (await cloud_target.generate(cloud_target.endless, max_new_tokens=2)).json()["generated_text"]
    assert answer.json() == {"predictions": [text, text]}


async def test_invocations_answers_like_the_root(cloud_target):
    target = cloud_target
    body = {"inputs": "plain words", "parameters": {"max_new_tokens": 2, "return_full_text": False}}
    assert (await target.post("/invocations", body)).json() == (await target.post("/", body)).json()


async def test_invocations_refuses_what_has_no_known_shape(cloud_target):
    response = await cloud_target.post("/invocations", {"nothing": 1})
    assert (response.status, response.headers["content-type"]) == (422, "text/plain; charset=utf-8")
