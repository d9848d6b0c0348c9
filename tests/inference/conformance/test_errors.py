import pytest

from tests.inference.conformance.raw_http import connect

WRONG_VALUES = [
    ({"best_of": 2}, "`best_of`"),
    ({"temperature": 0.0}, "`temperature`"),
    ({"temperature": -1.0}, "`temperature`"),
    ({"repetition_penalty": 0.0}, "`repetition_penalty`"),
    ({"frequency_penalty": 2.5}, "`frequency_penalty`"),
    ({"top_p": 1.0}, "`top_p`"),
    ({"top_p": 0.0}, "`top_p`"),
    ({"typical_p": 1.0}, "`typical_p`"),
    ({"top_k": 0}, "`top_k`"),
    ({"max_new_tokens": 0}, "`max_new_tokens`"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "`stop`"),
    ({"top_n_tokens": 6}, "`top_n_tokens`"),
    ({"truncate": 0}, "`truncate`"),
    ({"truncate": 10_000_000}, "`truncate`"),
    ({"grammar": {"type": "json", "value": {"type": "object"}}}, "rammar"),
]


@pytest.mark.parametrize(("parameters", "part"), WRONG_VALUES)
async def test_a_wrong_value_is_a_validation_error_of_a_document(target, parameters, part):
    response = await target.post("/generate", {"inputs": "x", "parameters": parameters})
    assert (response.status, response.json()["error_type"]) == (422, "validation")
    assert list(response.json()) == ["error", "error_type"]
    assert response.json()["error"].startswith("Input validation error: ")
    assert part in response.json()["error"]


@pytest.mark.parametrize(("parameters", "part"), WRONG_VALUES)
async def test_a_wrong_value_is_the_only_frame_of_a_stream_that_says_200(target, parameters, part):
    response = await target.post("/generate_stream", {"inputs": "x", "parameters": parameters})
    (frame,) = response.frames()
    assert (response.status, frame["error_type"], response.ended) == (200, "validation", "complete")
    assert part in frame["error"]


@pytest.mark.parametrize("parameters", [{"best_of": 2, "do_sample": True}, {"decoder_input_details": True}])
async def test_what_a_stream_cannot_give_is_refused_in_it(target, parameters):
    response = await target.post("/generate_stream", {"inputs": "x", "parameters": parameters})
    assert response.frames()[0]["error_type"] == "validation"


async def test_the_first_broken_rule_is_the_one_that_is_named(target):
    parameters = {"top_p": 1.0, "temperature": 0.0, "max_new_tokens": 0}
    response = await target.post("/generate", {"inputs": "", "parameters": parameters})
    assert "`temperature`" in response.json()["error"]


async def test_empty_inputs_are_refused(target):
    response = await target.post("/generate", {"inputs": ""})
    assert (response.status, response.json()["error_type"]) == (422, "validation")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_wrong_value_in_a_chat_claims_422_in_either_form(target, stream):
    response = await target.chat(target.brief, top_p=1.0, stream=stream)
    if stream:
        assert response.status == 200
        assert response.frames()[0]["error"]["http_status_code"] == 422
        assert response.events()[-1] == "[DONE]"
    else:
        assert (response.status, response.json()["error_type"]) == (422, "validation")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/generate", {}),
        ("/generate", {"inputs": 5}),
        ("/generate", {"inputs": "x", "parameters": None}),
        ("/generate", {"inputs": "x", "parameters": {"do_sample": None}}),
        ("/generate", {"inputs": "x", "parameters": {"stop": None}}),
        ("/generate", {"inputs": "x", "parameters": {"max_new_tokens": -1}}),
        ("/generate_stream", {"inputs": ["x"]}),
        ("/v1/chat/completions", {}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "stop": "y"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "logit_bias": {"1": 2}}),
        ("/v1/chat/completions", {"messages": [{"role": "assistant", "content": None}]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "text"}}),
        ("/v1/completions", {"prompt": []}),
    ],
)
async def test_a_wrong_shape_is_a_422_in_plain_text(target, path, body):
    response = await target.post(path, body)
    assert (response.status, response.headers["content-type"]) == (422, "text/plain; charset=utf-8")
    assert response.text.startswith("Failed to deserialize the JSON body into the target type")


async def test_unknown_fields_are_ignored(target):
    assert (await target.chat(target.brief, max_tokens=1, user="me", chat_template_kwargs={})).status == 200


async def test_malformed_json_is_a_400_in_plain_text(target):
    response = await target.post("/generate", b'{"inputs": "x"')
    assert (response.status, response.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert response.text.startswith("Failed to parse the request body as JSON: ")


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}])
async def test_another_content_type_is_a_415_in_plain_text(target, headers):
    connection = await connect(target.url, "POST", "/generate", b'{"inputs": "x"}', headers)
    response = await connection.read_all()
    await connection.close()
    assert response.status == 415
    assert response.headers["content-type"].startswith("text/plain")


async def test_a_body_beyond_the_limit_is_a_413_in_plain_text(target):
    response = await target.post("/generate", {"inputs": "x" * 2_000_001})
    assert response.status == 413
    assert response.text.startswith("Failed to buffer the request body: ")
