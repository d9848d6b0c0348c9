import pytest

from inference.local_server.errors import InvalidInputError
from inference.local_server.validation import Limits, check_lengths
from tests.inference.conformance import raw_http
from tests.inference.local_server.asking import story
from tests.inference.local_server.conftest import WINDOW_TOKENS, serve

pytestmark = pytest.mark.real_model

# In the order in which they are tested: a request that breaks two rules is told of the first.
RULES = [
    ({"best_of": 2}, "you must use sampling when `best_of` is > 1"),
    ({"temperature": 0}, "`temperature` must be strictly positive"),
    ({"repetition_penalty": 0}, "`repetition_penalty` must be strictly positive"),
    ({"frequency_penalty": -2.5}, "`frequency_penalty` must be >= -2.0 and <= 2.0"),
    ({"top_p": 1.0}, "`top_p` must be > 0.0 and < 1.0"),
    ({"typical_p": 1.0}, "`typical_p` must be > 0.0 and < 1.0"),
    ({"top_k": 0}, "`top_k` must be strictly positive"),
    ({"max_new_tokens": 0}, "`max_new_tokens` must be strictly positive"),
    ({"stop": list("abcde")}, "`stop` supports up to 4 stop sequences. Given: 5"),
    ({"best_of": 2, "do_sample": True, "seed": 1}, "`seed` must not be set when `best_of` > 1"),
    ({"top_n_tokens": 6}, "`top_n_tokens` must be >= 0 and <= 5. Given: 6"),
    ({"truncate": 0}, "`truncate` must be strictly positive and less than 2047. Given: 0"),
    ({"grammar": {"type": "json", "value": {}}}, "grammar is not valid: Grammar must have a 'properties' field"),
]


def error(text: str) -> dict:
    return {"error": f"Input validation error: {text}", "error_type": "validation"}


@pytest.mark.parametrize(("parameters", "text"), RULES)
async def test_a_broken_rule_is_a_422_of_generate(server, parameters, text):
    response = await raw_http.post(server.url, "/generate", {"inputs": "a", "parameters": parameters})
    assert response.status == 422
    assert response.json() == error(text)


@pytest.mark.parametrize(("parameters", "text"), [rule for rule in RULES if "best_of" not in rule[0]])
async def test_a_broken_rule_is_the_only_frame_of_a_stream(server, parameters, text):
    response = await raw_http.post(server.url, "/generate_stream", {"inputs": "a", "parameters": parameters})
    assert response.status == 200
    assert response.frames() == [error(text)]
    assert response.ended == "complete"


@pytest.mark.parametrize("at", range(1, len(RULES) - 3))
async def test_the_first_broken_rule_is_the_one_that_is_told(server, at):
    broken = {"best_of": 1} | RULES[at + 1][0] | RULES[at][0]
    response = await raw_http.post(server.url, "/generate", {"inputs": "", "parameters": broken})
    assert response.json() == error(RULES[at][1])


async def test_an_empty_prompt_is_refused(server):
    assert (await raw_http.post(server.url, "/generate", {"inputs": ""})).json() == error("`inputs` cannot be empty")


async def test_what_a_stream_cannot_do_is_told_before_all_else(server):
    for parameters, text in [
        ({"best_of": 2}, "`best_of` != 1 is not supported when streaming tokens"),
        ({"decoder_input_details": True}, "`decoder_input_details` == true is not supported when streaming tokens"),
    ]:
        body = {"inputs": "", "parameters": parameters | {"temperature": 0}}
        assert (await raw_http.post(server.url, "/generate_stream", body)).frames() == [error(text)]


async def test_a_prompt_without_room_for_the_answer_is_refused(server):
    body = {"inputs": "word " * (WINDOW_TOKENS - 100), "parameters": {"max_new_tokens": 500}}
    tokens = len((await raw_http.post(server.url, "/tokenize", body)).json())
    assert (await raw_http.post(server.url, "/generate", body)).json() == error(
        f"`inputs` tokens + `max_new_tokens` must be <= {WINDOW_TOKENS}. "
        f"Given: {tokens} `inputs` tokens and 500 `max_new_tokens`"
    )


def test_only_the_first_1024_new_tokens_are_weighed_but_no_more_than_fit_are_written():
    limits = Limits(max_total_tokens=4096, max_input_tokens=4095, max_concurrent_requests=1)
    assert check_lengths(1000, 100_000, limits) == 3096
    assert check_lengths(1000, 1500, limits) == 1500
    assert check_lengths(1000, None, limits) == 3096
    with pytest.raises(InvalidInputError, match="1024 `max_new_tokens`"):
        check_lengths(3073, 100_000, limits)
    with pytest.raises(InvalidInputError, match="less than 4095 tokens"):
        check_lengths(4096, None, limits)


@pytest.mark.parametrize(
    ("raw", "status", "beginning"),
    [
        (b'{"inputs": "a"', 400, "Failed to parse the request body as JSON: "),
        (b'{"inputs": "\\ud800"}', 400, "Failed to parse the request body as JSON: "),
        (b"{}", 422, "Failed to deserialize the JSON body into the target type: missing field `inputs`"),
        (b'{"inputs": 3}', 422, "Failed to deserialize the JSON body into the target type: inputs: invalid type"),
        (b'{"inputs": "a", "parameters": null}', 422, "Failed to deserialize the JSON body into the target type: "),
        (
            b'{"inputs": "a", "parameters": {"top_n_tokens": -1}}',
            422,
            "Failed to deserialize the JSON body into the target type: parameters.top_n_tokens: ",
        ),
        (b'{"inputs": "%s"}' % (b"a" * 2_000_000), 413, "Failed to buffer the request body: "),
    ],
    ids=["truncated", "lone surrogate", "missing", "wrong type", "null", "negative", "too large"],
)
async def test_a_body_that_is_no_request_is_answered_in_plain_text(server, raw, status, beginning):
    response = await raw_http.post(server.url, "/generate", raw)
    assert response.status == status
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.text.startswith(beginning)


@pytest.mark.parametrize(
    "fields",
    [
        {"stop": "x"},
        {"stream_options": None},
        {"logit_bias": {"1": 2}},
        {"response_format": {"type": "text"}},
        {"response_format": {"type": "json_schema", "json_schema": {}}},
        {"messages": [{"role": "user", "content": None}]},
        {"messages": [{"content": "a"}]},
    ],
)
async def test_chat_fields_of_a_wrong_shape_are_answered_in_plain_text(server, fields):
    body = {"messages": [{"role": "user", "content": "a"}], "stream": True} | fields
    response = await raw_http.post(server.url, "/v1/chat/completions", body)
    assert response.status == 422
    assert response.headers["content-type"] == "text/plain; charset=utf-8"


async def test_another_content_type_is_a_415(server):
    response = await raw_http.post(server.url, "/generate", {"inputs": "a"}, {"content-type": "text/plain"})
    assert response.status == 415
    assert "application/json" in response.text


async def test_unknown_paths_and_methods_have_empty_answers(server):
    missing = await raw_http.get(server.url, "/nowhere")
    wrong = await raw_http.get(server.url, "/generate")
    assert (missing.status, missing.body) == (404, b"")
    assert (wrong.status, wrong.body) == (405, b"")


async def test_completions_that_are_not_done_say_so(server):
    for fields, code in [({"suffix": "x"}, "suffix not supported"), ({"prompt": ["a"] * 5}, "batch size exceeded")]:
        response = await raw_http.post(server.url, "/v1/completions", {"prompt": "a"} | fields)
        assert response.status == 422
        assert response.json()["error_type"] == code


async def test_a_key_is_asked_for_where_one_is_set(running):
    with serve(running, api_key="Secret") as server:
        body = story(max_new_tokens=1)
        refused = await raw_http.post(server.url, "/generate", body)
        wrong = await raw_http.post(server.url, "/generate", body, {"authorization": "Bearer other"})
        right = await raw_http.post(server.url, "/generate", body, {"authorization": "Bearer secret"})
        assert (refused.status, refused.body) == (401, b"")
        assert wrong.status == 401
        assert right.status == 200
        assert (await raw_http.get(server.url, "/info")).status == 200
