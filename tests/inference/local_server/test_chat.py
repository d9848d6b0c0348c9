import pytest

from tests.inference.conformance import raw_http
from tests.inference.local_server.asking import chat

pytestmark = pytest.mark.real_model

ROUTE = "/v1/chat/completions"


async def test_an_answer_is_one_chat_completion(server):
    answer = (await raw_http.post(server.url, ROUTE, chat("Say hello."))).json()
    assert list(answer) == ["object", "id", "created", "model", "system_fingerprint", "choices", "usage"]
    assert answer["object"] == "chat.completion"
    assert answer["id"] == ""
    (choice,) = answer["choices"]
    assert list(choice) == ["index", "message", "logprobs", "finish_reason"]
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["content"]
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


async def test_a_stream_has_the_role_in_each_delta_and_done_at_its_end(server):
    response = await raw_http.post(server.url, ROUTE, chat("Say hello.", stream=True, max_tokens=3))
    frames = response.frames()
    assert response.events()[-1] == "[DONE]"
    assert response.events().count("[DONE]") == 1
    assert all(list(frame["choices"][0]["delta"]) == ["role", "content"] for frame in frames)
    assert [frame["choices"][0]["finish_reason"] for frame in frames] == [None, None, "length"]
    assert all(frame["usage"] is None for frame in frames)


async def test_usage_comes_once_and_last_when_asked(server):
    body = chat("Say hello.", stream=True, max_tokens=3, stream_options={"include_usage": True})
    *tokens, last = (await raw_http.post(server.url, ROUTE, body)).frames()
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 3
    assert all(frame["usage"] is None for frame in tokens)


async def test_the_end_of_text_is_an_empty_delta_with_the_reason_stop(server):
    grammar = {"type": "regex", "value": "Yes"}
    body = chat("Yes?", stream=True, response_format=grammar)
    frames = (await raw_http.post(server.url, ROUTE, body)).frames()
    assert "".join(frame["choices"][0]["delta"]["content"] for frame in frames) == "Yes"
    assert frames[-1]["choices"][0] == {
        "index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": "stop",
    }  # fmt: skip


async def test_a_stop_string_ends_with_its_own_reason(server):
    grammar = {"type": "regex", "value": "alpha, beta, gamma"}
    body = chat("Go.", stop=["beta,"], response_format=grammar)
    (choice,) = (await raw_http.post(server.url, ROUTE, body)).json()["choices"]
    assert choice["finish_reason"] == "stop_sequence"
    assert choice["message"]["content"] == "alpha, beta,"


async def test_a_last_message_of_the_assistant_is_continued(server):
    body = chat("Count from one to five in words.", "one, two, three,", max_tokens=4)
    rendered = (await raw_http.post(server.url, "/chat_tokenize", body)).json()
    assert rendered["templated_text"].endswith("<|im_start|>assistant\none, two, three,")
    answer = (await raw_http.post(server.url, ROUTE, body)).json()
    assert answer["choices"][0]["message"]["content"].strip().startswith("four")


async def test_an_empty_last_message_of_the_assistant_is_answered_anew(server):
    rendered = (await raw_http.post(server.url, "/chat_tokenize", chat("Hi", ""))).json()["templated_text"]
    assert rendered.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


async def test_parts_of_a_message_are_joined(server):
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    body = {"messages": [{"role": "user", "content": parts}]}
    assert "user\nHello<|im_end|>" in (await raw_http.post(server.url, "/chat_tokenize", body)).json()["templated_text"]


async def test_the_next_turn_reads_only_what_is_new(server):
    question = "Explain in many words how a bicycle stays upright when it moves. " * 4
    first = (await raw_http.post(server.url, ROUTE, chat(question))).json()
    said = first["choices"][0]["message"]["content"]
    second = (await raw_http.post(server.url, ROUTE, chat(question, said, "And a unicycle?"))).json()
    fresh = second["usage"]["prompt_tokens"] - second["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert second["usage"]["prompt_tokens"] > 80
    assert fresh < 25


async def test_two_conversations_in_turn_keep_their_prefixes(server):
    questions = [f"{word}: tell me all that you know about it. " * 5 for word in ("Rivers", "Stars", "Bread")]
    said = [
        (await raw_http.post(server.url, ROUTE, chat(question, max_tokens=4))).json()["choices"][0]["message"][
            "content"
        ]
        for question in questions
    ]
    for question, answer in zip(questions, said, strict=True):
        usage = (await raw_http.post(server.url, ROUTE, chat(question, answer, "More.", max_tokens=1))).json()["usage"]
        assert usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"] < 25


async def test_a_template_error_is_a_real_422_even_for_a_stream(server):
    response = await raw_http.post(server.url, ROUTE, {"messages": [], "stream": True})
    assert response.status == 422
    assert response.json()["error_type"] == "template_error"


async def test_an_error_within_a_stream_says_422_and_done(server):
    response = await raw_http.post(server.url, ROUTE, chat("Hi", stream=True, top_p=1))
    assert response.status == 200
    assert response.frames() == [
        {"error": {"message": "Input validation error: `top_p` must be > 0.0 and < 1.0", "http_status_code": 422}}
    ]
    assert response.events()[-1] == "[DONE]"


async def test_log_probabilities_are_shown_when_asked(server):
    body = chat("Hi", max_tokens=2, logprobs=True, top_logprobs=2)
    (choice,) = (await raw_http.post(server.url, ROUTE, body)).json()["choices"]
    assert [len(entry["top_logprobs"]) for entry in choice["logprobs"]["content"]] == [2, 2]


async def test_completions_of_two_prompts_are_told_apart_by_their_index(server):
    body = {"prompt": ["One two", "Red green"], "max_tokens": 3, "temperature": 0}
    whole = (await raw_http.post(server.url, "/v1/completions", body)).json()
    streamed = await raw_http.post(server.url, "/v1/completions", body | {"stream": True})
    for index in (0, 1):
        frames = [frame for frame in streamed.frames() if frame["choices"][0]["index"] == index]
        assert "".join(frame["choices"][0]["text"] for frame in frames) == whole["choices"][index]["text"]
        assert [frame["choices"][0]["finish_reason"] for frame in frames] == ["", "", "length"]
        assert ["usage" in frame for frame in frames] == [False, False, True]
    assert streamed.events()[-1] == "[DONE]"
