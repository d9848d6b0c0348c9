import asyncio
import json

import pytest

from tests.inference.conformance import raw_http
from tests.inference.local_server.asking import dictated, story

pytestmark = pytest.mark.real_model

TIMING_HEADERS = {
    "x-compute-time", "x-total-time", "x-validation-time", "x-queue-time", "x-inference-time",
    "x-time-per-token", "x-prompt-tokens", "x-generated-tokens", "x-compute-characters",
}  # fmt: skip


async def test_generate_answers_an_object_and_the_root_an_array_of_it(server):
    body = {"inputs": "Count: one two", "parameters": {"max_new_tokens": 2, "return_full_text": False}}
    plain = (await raw_http.post(server.url, "/generate", body)).json()
    rooted = (await raw_http.post(server.url, "/", body)).json()
    assert rooted == [plain]
    assert set(plain) == {"generated_text"}


async def test_the_root_repeats_the_prompt_unless_told_otherwise(server):
    body = {"inputs": "Count: one two", "parameters": {"max_new_tokens": 2}}
    rooted = (await raw_http.post(server.url, "/", body)).json()
    assert rooted[0]["generated_text"].startswith("Count: one two")


async def test_details_hold_every_token_and_the_special_one_at_the_end(server):
    answer = (await raw_http.post(server.url, "/generate", dictated("Good morning"))).json()
    details = answer["details"]
    assert answer["generated_text"] == "Good morning"
    assert details["finish_reason"] == "eos_token"
    assert details["generated_tokens"] == len(details["tokens"])
    assert details["prefill"] == []
    assert details["seed"] is None
    assert [token["special"] for token in details["tokens"]] == [False] * (len(details["tokens"]) - 1) + [True]
    assert details["tokens"][-1]["text"] == "<|im_end|>"
    assert all(token["logprob"] <= 0 for token in details["tokens"])


async def test_a_complete_answer_carries_its_timings_as_headers(server):
    response = await raw_http.post(server.url, "/generate", story(max_new_tokens=3))
    assert set(response.headers) >= TIMING_HEADERS
    assert all(float(response.headers[name]) >= 0 for name in TIMING_HEADERS)
    assert response.headers["x-generated-tokens"] == "3"
    assert response.headers["x-compute-type"] == "cpu"


async def test_one_token_ends_by_length(server):
    answer = (await raw_http.post(server.url, "/generate", story(max_new_tokens=1))).json()
    assert answer["details"]["finish_reason"] == "length"
    assert answer["details"]["generated_tokens"] == 1


async def test_the_stop_string_is_part_of_the_answer(server):
    body = dictated("alpha, beta, gamma", stop=["beta,"])
    answer = (await raw_http.post(server.url, "/generate", body)).json()
    assert answer["generated_text"] == "alpha, beta,"
    assert answer["details"]["finish_reason"] == "stop_sequence"


async def test_a_seed_is_echoed_and_repeats_the_answer(server):
    body = story(max_new_tokens=8, do_sample=True, temperature=1.5, seed=2**63 + 7)
    first, second = [(await raw_http.post(server.url, "/generate", body)).json() for _ in range(2)]
    assert first["details"]["seed"] == 2**63 + 7
    assert first["generated_text"] == second["generated_text"]


async def test_the_better_of_two_answers_comes_first(server):
    body = story(max_new_tokens=4, do_sample=True, best_of=2)
    details = (await raw_http.post(server.url, "/generate", body)).json()["details"]
    (other,) = details["best_of_sequences"]

    def mean(tokens: list[dict]) -> float:
        return sum(token["logprob"] for token in tokens) / len(tokens)

    assert mean(details["tokens"]) >= mean(other["tokens"])


async def test_truncation_keeps_the_last_tokens_of_the_prompt(server):
    body = {"inputs": "red green blue", "parameters": {"max_new_tokens": 1, "truncate": 2}}
    response = await raw_http.post(server.url, "/generate", body)
    assert response.headers["x-prompt-tokens"] == "2"


async def test_parallel_greedy_requests_give_the_same_text(server):
    answers = await asyncio.gather(
        *(raw_http.post(server.url, "/generate", dictated("one two three four")) for _ in range(4))
    )
    assert {answer.json()["generated_text"] for answer in answers} == {"one two three four"}


async def test_a_json_grammar_is_followed(server):
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 120}},
        "required": ["name", "age"],
    }
    body = story(max_new_tokens=60, grammar={"type": "json", "value": schema})
    answer = (await raw_http.post(server.url, "/generate", body)).json()
    assert set(json.loads(answer["generated_text"])) == {"name", "age"}


async def test_tokens_say_which_bytes_they_cover(server):
    text = "Hi 漢字 😀\u2028x"
    tokens = (await raw_http.post(server.url, "/tokenize", {"inputs": text})).json()
    raw = text.encode()
    assert all(raw[token["start"] : token["stop"]].decode() == token["text"] for token in tokens)
    assert tokens[0]["start"] == 0
    assert tokens[-1]["stop"] == len(raw)
    assert all(isinstance(token["id"], int) for token in tokens)
