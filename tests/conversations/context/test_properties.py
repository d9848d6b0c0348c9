"""Whatever the path, its sizes and its scripts: a prompt never exceeds its budget, and says what must be said."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.context.fitting import LEAST_ANSWER_TOKENS, budget_of, fit
from conversations.context.material import Material, Said
from conversations.context.prompt import assemble
from conversations.exceptions import ContentTooLong
from inference.messages import ChatMessage
from tests.conversations.context.counting import Counter, prompt_tokens, tokens_of
from tests.conversations.context.paths import memories_of, summary

SCRIPTS = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60)
    | st.text("天気予報会議三時漢字汉语", min_size=1, max_size=60)
    | st.text("مرحبا بالعالمשלום ", min_size=1, max_size=60)
    | st.text("👩‍👩‍👧🏽🇪🇺🤗", min_size=1, max_size=30)
    | st.text("e\u0301\u0323a\u030a", min_size=1, max_size=40)
    | st.sampled_from(["def f(x):\n    return {x: [x]}\n", "\n\n  ", "don't", "<|im_end|>", "aaaaaaaaaaaaaaaa" * 8])
    | st.text("the quick brown fox ", min_size=1, max_size=300)
)


@st.composite
def paths(draw):
    """Draw a path: most often in turns, but answers fail, are continued, or stand where a question should.

    Every text begins with the number of its message, so that it can be told where it is from.
    """
    number = draw(st.integers(0, 14))
    damage = draw(st.sampled_from(["none", "none", "none", "some"]))
    roles = [
        draw(st.sampled_from(["user", "assistant"])) if damage == "some" else ("user", "assistant")[place % 2]
        for place in range(number)
    ]
    last = draw(st.sampled_from(["user", "user", "user", "assistant"]))
    if last == "assistant":
        roles.append("user")
    elif roles and roles[-1] == "user" and damage == "none":
        roles.append("assistant")
    path = []
    for place, role in enumerate([*roles, last], 1):
        is_last = place == len(roles) + 1
        content = f"[{place}]{draw(SCRIPTS)}" if is_last or role == "user" or draw(st.integers(0, 5)) else ""
        passages = tuple(draw(st.lists(SCRIPTS, max_size=2))) if role == "user" and draw(st.integers(0, 4)) == 0 else ()
        said = Said(UUID(int=place), role, content, passages=passages)
        path.append(replace(said, token_counts={"bpe": tokens_of(content)}) if draw(st.booleans()) else said)
    return tuple(path)


@st.composite
def materials(draw):
    path = draw(paths())
    summaries = [summary(1, len(path) // 3 or 1, draw(SCRIPTS))] if draw(st.booleans()) else []
    return Material(
        path,
        site_instructions=draw(st.sampled_from(["", "Be brief."])),
        user_instructions=draw(st.just("") | SCRIPTS),
        instructions=draw(st.just("") | SCRIPTS),
        memories=memories_of(*draw(st.lists(SCRIPTS, max_size=4))),
        summaries=tuple(summaries),
    )


def must_be_said(material, so_far=""):
    """Return the least prompt: the instructions, and the last question with what follows it."""
    texts = [said for said in material.path if said.content]
    last = next((i for i in reversed(range(len(texts))) if texts[i].role == "user"), 0)
    bare = replace(
        material,
        path=tuple(replace(said, passages=()) for said in texts[last:]),
        memories=(),
        summaries=(),
    )
    messages = assemble(bare)
    if not so_far:
        return messages
    if messages[-1].role == "assistant":
        return (*messages[:-1], ChatMessage("assistant", messages[-1].content + so_far))
    return (*messages, ChatMessage("assistant", so_far))


@settings(max_examples=200, deadline=None)
@given(
    materials(), st.integers(64, 1_200), st.integers(1, 800), st.sampled_from(["", "", "It was"]), st.floats(0.9, 1.15)
)
def test_a_prompt_fits_by_the_servers_count_or_what_must_be_said_does_not(
    material, window_tokens, answer_tokens, so_far, bias
):
    budget = budget_of(window_tokens, answer_tokens)
    least = must_be_said(material, so_far)
    try:
        prompt = asyncio.run(
            fit(
                material,
                counter=Counter(bias=bias),
                window_tokens=window_tokens,
                answer_tokens=answer_tokens,
                so_far=so_far,
            )
        )
    except ContentTooLong as error:
        refusal = error
    else:
        refusal = None
    if refusal:
        tokens = prompt_tokens(least)
        assert tokens > budget
        assert refusal.details == {"tokens": tokens, "limit": budget, "over": tokens - budget}
        return
    assert prompt_tokens(prompt.messages) <= budget
    if bias <= 1:
        assert prompt_tokens(prompt.messages) <= prompt.record.total_tokens
        assert prompt_tokens(prompt.messages) + prompt.max_new_tokens <= window_tokens
    assert min(answer_tokens, LEAST_ANSWER_TOKENS) <= prompt.max_new_tokens <= answer_tokens


@settings(max_examples=100, deadline=None)
@given(materials(), st.integers(100, 1_000))
def test_instructions_and_the_last_message_are_whole_and_the_rest_is_in_order(material, window_tokens):
    try:
        prompt = asyncio.run(fit(material, counter=Counter(), window_tokens=window_tokens, answer_tokens=200))
    except ContentTooLong:
        return
    system = prompt.messages[0].content if prompt.messages[0].role == "system" else ""
    for instructions in (material.site_instructions, material.user_instructions, material.instructions):
        assert instructions in system
    assert prompt.messages[-1].content.endswith(material.path[-1].content)
    text = "".join(message.content for message in prompt.messages if message.role != "system")
    places = [text.find(f"[{place}]") for place in range(1, len(material.path) + 1)]
    kept = [place for place in places if place >= 0]
    assert kept == sorted(kept)
    roles = [message.role for message in prompt.messages if message.role != "system"]
    assert all(role != following for role, following in pairwise(roles))
    if any(said.role == "user" for said in material.path):
        assert roles[0] == "user"


@settings(max_examples=100, deadline=None)
@given(materials(), st.integers(100, 1_000))
def test_a_kept_question_keeps_its_answer(material, window_tokens):
    try:
        prompt = asyncio.run(fit(material, counter=Counter(), window_tokens=window_tokens, answer_tokens=200))
    except ContentTooLong:
        return
    text = "".join(message.content for message in prompt.messages if message.role != "system")
    for before, after in pairwise(material.path):
        if after.role == "assistant" and after.content and before.content:
            assert (f"[{before.message_id.int}]" in text) == (f"[{after.message_id.int}]" in text) or (
                before.role == "assistant"
            )


@settings(max_examples=200, deadline=None)
@given(materials(), st.integers(100, 1_000))
def test_a_record_is_enough_to_make_the_prompt_again(material, window_tokens):
    try:
        prompt = asyncio.run(fit(material, counter=Counter(), window_tokens=window_tokens, answer_tokens=200))
    except ContentTooLong:
        return
    assert assemble(material, prompt.record) == prompt.messages


@settings(max_examples=200, deadline=None)
@given(materials(), st.integers(400, 1_000), SCRIPTS)
def test_the_next_prompt_begins_with_this_one_unless_more_must_go(material, window_tokens, answer):
    limits = {"window_tokens": window_tokens, "answer_tokens": 100}
    try:
        before = asyncio.run(fit(material, counter=Counter(), **limits))
    except ContentTooLong:
        return
    if material.path[-1].role != "user":
        return
    last = len(material.path)
    answered = (Said(UUID(int=last + 1), "assistant", answer), Said(UUID(int=last + 2), "user", "And then?"))
    later = replace(material, path=(*material.path, *answered), previous=before.record)
    expected = (*before.messages, ChatMessage("assistant", answer), ChatMessage("user", "And then?"))
    after = asyncio.run(fit(later, counter=Counter(), **limits))
    # Near the budget, parts that are joined into one turn may weigh too much.
    if prompt_tokens(expected) + 20 * (len(later.path) + len(later.memories)) <= budget_of(window_tokens, 100):
        assert after.messages[-2:] == expected[-2:]
        if len(before.record.memories) == len(material.memories) and before.record.summary == after.record.summary:
            assert after.messages == expected
            assert not after.is_trimmed
