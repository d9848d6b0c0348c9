"""Counting by what a server says."""

import asyncio
import json

import pytest

from inference.catalog import ServerKind
from inference.messages import ChatMessage
from inference.model_server import ServerInfo
from inference.template_tokens import SUPPOSED
from inference.testing.running import running_twin
from inference.testing.settings import TwinSettings
from inference.tgi.errors import Misbehaved, Unreachable
from inference.token_counting import TemplateTokens, counter_of, upper_bound
from tests.inference.tgi.scripted_server import response_of, scripted_server
from tests.inference.token_counting.states import state_of
from tests.inference.token_counting.tokenizers import count

HELLO = [ChatMessage("user", "Hello there")]


def token(text, start, stop):
    return {"id": 1, "text": text, "start": start, "stop": stop}


def words(text):
    """As a server with a begin-of-text token lists them."""
    return [token("", 0, 0), *(token(word, 1, 2) for word in text.split(" "))]


async def answer(exchange, body, status=200):
    await response_of(status, json.dumps(body).encode())(exchange)


async def word_server(exchange):
    if exchange.path == "/tokenize":
        await answer(exchange, words(exchange.body["inputs"]))
    else:
        contents = " ".join(message["content"] for message in exchange.body["messages"])
        await answer(exchange, {"tokenize_response": words(f"{contents} assistant"), "templated_text": contents})


async def old_server(exchange):
    """TGI 1.4: it counts texts, and knows no `/chat_tokenize`."""
    await (word_server(exchange) if exchange.path == "/tokenize" else response_of(404, b"", None)(exchange))


class TestNames:
    async def test_counts_are_kept_under_the_served_models_name_and_revision(self, session):
        assert counter_of(state_of("http://a:1", session)).name == "Org/Small"
        assert counter_of(state_of("http://a:1", session, sha="0f1e")).name == "Org/Small@0f1e"

    async def test_a_tokenizer_that_the_version_names_is_the_name(self, session):
        assert counter_of(state_of("http://a:1", session, sha="0f1e", tokenizer="Org/Tokens")).name == "Org/Tokens"

    async def test_a_server_that_has_said_nothing_yet_goes_by_its_version(self, session):
        state = state_of("http://a:1", session)
        state.info = None
        assert counter_of(state).name == "small"


class TestTexts:
    async def test_special_tokens_that_the_server_adds_are_not_counted(self, session):
        async with scripted_server(word_server) as server:
            assert await counter_of(state_of(server.url, session)).count_texts(["one two three"]) == [3]

    async def test_a_tokenizer_that_shows_no_offsets_is_counted_as_it_is(self, session):
        async with scripted_server(response_of(200, json.dumps([token("", 0, 0)] * 4).encode())) as server:
            assert await counter_of(state_of(server.url, session)).count_texts(["x"]) == [4]

    async def test_texts_are_counted_in_their_order_and_each_once(self, session):
        async with scripted_server(word_server) as server:
            counts = await counter_of(state_of(server.url, session)).count_texts(["a b", "a", "a b", "", "a b c"])
            asked = [exchange.body["inputs"] for exchange in server.exchanges]
        assert counts == [2, 1, 2, 0, 3]
        assert sorted(asked) == ["a", "a b", "a b c"]

    async def test_what_stands_in_every_prompt_is_asked_for_once_until_another_model_runs(self, session):
        async with scripted_server(word_server) as server:
            state = state_of(server.url, session)
            for _ in range(3):
                assert await counter_of(state).count_texts(["Be brief.", "x" * 10_000]) == [2, 1]
            asked = [exchange.body["inputs"] for exchange in server.exchanges]
            assert asked.count("Be brief.") == 1
            assert len(asked) == 4, "what is long is not remembered"
            state.info = ServerInfo("Org/Other", None, None, None, None, None)
            await counter_of(state).count_texts(["Be brief."])
            assert len(server.exchanges) == 5

    async def test_only_what_was_counted_lately_is_remembered(self, session):
        async with scripted_server(word_server) as server:
            state = state_of(server.url, session)
            for _ in range(2):
                await counter_of(state).count_texts(["first"])
                await counter_of(state).count_texts([f"number {n}" for n in range(600)])
            asked = [exchange.body["inputs"] for exchange in server.exchanges]
        assert asked.count("first") == 2

    async def test_at_most_eight_are_asked_for_at_once(self, session):
        release = asyncio.Event()

        async def script(exchange):
            await release.wait()
            await word_server(exchange)

        async with scripted_server(script) as server:
            counting = asyncio.create_task(
                counter_of(state_of(server.url, session)).count_texts([f"number {n}" for n in range(30)])
            )
            await server.wait_until_asked(8)
            assert (len(server.exchanges), server.open_connections) == (8, 8)
            release.set()
            assert await counting == [2] * 30
            assert server.connections == 8

    async def test_a_server_that_is_away_is_an_error_of_the_server(self, session, unused_tcp_port):
        with pytest.raises(Unreachable):
            await counter_of(state_of(f"http://127.0.0.1:{unused_tcp_port}", session)).count_texts(["a", "b"])

    @pytest.mark.parametrize("body", [b"<html>", b"{}", b'"x"'])
    async def test_an_answer_that_lists_no_tokens_is_not_believed(self, session, body):
        for kind in ServerKind:
            async with scripted_server(response_of(200, body)) as server:
                with pytest.raises(Misbehaved):
                    await counter_of(state_of(server.url, session, kind=kind)).count_texts(["x"])

    async def test_a_text_is_counted_alike_in_each_dialect_of_the_twin(self, session):
        text = "Hello there, 我很好!\n\n    def f():"
        counts = []
        for dialect, kind in (("tgi", ServerKind.TGI), ("openai", ServerKind.OPENAI_COMPATIBLE)):
            async with running_twin(TwinSettings(dialect=dialect)) as twin:
                counts += await counter_of(state_of(twin.url, session, kind=kind)).count_texts([text])
        assert counts[0] == counts[1] > 10

    async def test_a_text_far_beyond_the_window_is_counted_too(self, session):
        async with running_twin(TwinSettings(max_input_tokens=99, max_total_tokens=100)) as twin:
            assert await counter_of(state_of(twin.url, session)).count_texts(["a b " * 5000]) == [10001]


class TestServersThatCannotSay:
    async def test_where_texts_cannot_be_counted_the_bound_is_given_and_said_to_be_one(self, session):
        async with scripted_server(response_of(404, b"", None)) as server:
            counter = counter_of(state_of(server.url, session))
            assert counter.is_exact
            assert await counter.count_texts(["wörd", "a"]) == [5, 1]
        assert not counter.is_exact

    async def test_it_is_logged_once_that_a_server_cannot_count(self, session, caplog):
        async with scripted_server(response_of(404, b"", None)) as server:
            state = state_of(server.url, session)
            for _ in range(3):
                await counter_of(state).count_texts(["a", "b"])
        assert caplog.text.count("tokens_not_counted") == 1

    async def test_a_prompt_is_bounded_by_its_texts_and_a_supposed_template(self, session):
        async with scripted_server(old_server) as server:
            counter = counter_of(state_of(server.url, session))
            assert await counter.count_prompt(HELLO) == 2 + SUPPOSED.base + SUPPOSED.per_message
            assert await counter.template() == SUPPOSED
        assert not counter.is_exact

    async def test_a_route_that_was_missing_for_a_moment_is_asked_for_again(self, session):
        async def script(exchange):
            is_first = len(server.exchanges) == 1
            await (response_of(404, b"", None)(exchange) if is_first else word_server(exchange))

        async with scripted_server(script) as server:
            state = state_of(server.url, session)
            assert await counter_of(state).template() == SUPPOSED
            counter = counter_of(state)
            assert await counter.template() != SUPPOSED
            assert counter.is_exact


class TestTheTemplate:
    async def test_it_is_measured_once_however_many_prompts_are_counted(self, session):
        async with scripted_server(word_server) as server:
            state = state_of(server.url, session)
            first, *others = await asyncio.gather(*(counter_of(state).template() for _ in range(5)))
            asked = len(server.exchanges)
            assert await counter_of(state).template() == first
            assert len(server.exchanges) == asked
        assert all(other is first for other in others)
        # One begin-of-text token and the word "assistant", and the margins.
        assert first == TemplateTokens(base=4, per_message=2)

    async def test_it_is_measured_anew_when_the_server_runs_another_model(self, session):
        async with scripted_server(word_server) as server:
            state = state_of(server.url, session)
            await counter_of(state).template()
            asked = len(server.exchanges)
            state.info = ServerInfo("Org/Other", None, None, None, None, None)
            await counter_of(state).template()
            assert len(server.exchanges) == 2 * asked

    async def test_a_server_that_fails_is_measured_by_the_next(self, session, unused_tcp_port):
        state = state_of(f"http://127.0.0.1:{unused_tcp_port}", session)
        for _ in range(2):
            with pytest.raises(Unreachable):
                await counter_of(state).template()

    async def test_contents_and_template_bound_the_twins_own_count(self, session):
        messages = [
            ChatMessage("system", "Be brief."),
            ChatMessage("user", "\n\nhow?\n"),
            ChatMessage("assistant", " so "),
        ]
        messages.append(ChatMessage("user", "👩‍👩‍👧 and 我?"))
        async with running_twin() as twin:
            counter = counter_of(state_of(twin.url, session))
            template = await counter.template()
            own = sum(await counter.count_texts([message.content for message in messages]))
            whole = await counter.count_prompt(messages)
        assert whole <= own + template.base + 4 * template.per_message <= whole + 30


class TestFiles:
    async def test_a_file_counts_without_asking_the_server(self, session, tokenizer, tokenizer_file):
        async with scripted_server(word_server) as server:
            counter = counter_of(state_of(server.url, session, tokenizer=str(tokenizer_file)))
            texts = ["Hello there", "我很好", "", "Hello there"]
            assert await counter.count_texts(texts) == [count(tokenizer, text) for text in texts]
            assert not server.exchanges

    async def test_a_file_that_cuts_and_fills_texts_counts_them_whole(self, session, tokenizer, tmp_path):
        path = tmp_path / "cutting.json"
        cutting = type(tokenizer).from_str(tokenizer.to_str())
        cutting.enable_truncation(4)
        cutting.enable_padding(length=12)
        cutting.save(str(path))
        counter = counter_of(state_of("http://a:1", session, tokenizer=str(path)))
        assert await counter.count_texts(["a", "a b c d e f g h"]) == [1, count(tokenizer, "a b c d e f g h")]

    @pytest.mark.parametrize("content", [None, "", "{}", "not json"])
    async def test_a_broken_file_leaves_the_counting_to_the_server(self, session, tmp_path, content, caplog):
        path = tmp_path / "tokenizer.json"
        if content is not None:
            path.write_text(content)
        async with scripted_server(word_server) as server:
            counter = counter_of(state_of(server.url, session, tokenizer=str(path)))
            assert await counter.count_texts(["one two"]) == [2]
            assert await counter.count_texts(["one two three"]) == [3]
        assert caplog.text.count("tokenizer_broken") == 1, "said once"

    async def test_a_file_that_is_put_right_is_used(self, session, tokenizer, tmp_path):
        path = tmp_path / "tokenizer.json"
        path.write_text("{}")
        async with scripted_server(word_server) as server:
            counter = counter_of(state_of(server.url, session, tokenizer=str(path)))
            assert await counter.count_texts(["one two"]) == [2]
            tokenizer.save(str(path))
            asked = len(server.exchanges)
            assert await counter.count_texts(["one two"]) == [count(tokenizer, "one two")]
            assert len(server.exchanges) == asked

    async def test_the_loop_goes_on_while_a_long_text_is_counted(self, session, tokenizer_file):
        counter = counter_of(state_of("http://a:1", session, tokenizer=str(tokenizer_file)))
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0)
                ticks += 1

        ticking = asyncio.create_task(tick())
        (tokens,) = await counter.count_texts(["4 7 " * 50_000])
        ticking.cancel()
        assert tokens > 100_000
        assert ticks > 100


def test_ascii_has_at_most_as_many_tokens_as_characters():
    assert upper_bound("a" * 1000) == 1000


def test_a_lone_surrogate_is_bounded_too():
    assert upper_bound("\ud800") == 3
