"""Frames of a chat stream: whatever the bytes are, they are a chunk or a named failure."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.tgi.chunks import Chunk, Usage, parse_chunk
from inference.tgi.errors import ModelServerError
from tests.inference.tgi.scripted_server import delta

KEYS = st.sampled_from(
    [
        "choices",
        "delta",
        "content",
        "reasoning",
        "finish_reason",
        "usage",
        "error",
        "error_type",
        "message",
        "code",
        "prompt_tokens",
        "completion_tokens",
        "prompt_tokens_details",
        "cached_tokens",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


def is_chunk_or_failure(payload: bytes) -> bool:
    try:
        chunk = parse_chunk(payload)
    except ModelServerError:
        return True
    return isinstance(chunk.text, str) and isinstance(chunk.reasoning, str) and chunk.reason in {None, "stop", "length"}


@given(st.binary())
def test_any_bytes_are_a_chunk_or_a_named_failure(payload):
    assert is_chunk_or_failure(payload)


@given(st.dictionaries(KEYS, JSON))
def test_any_object_is_a_chunk_or_a_named_failure(frame):
    assert is_chunk_or_failure(json.dumps(frame).encode())


@given(st.dictionaries(KEYS, JSON), st.dictionaries(KEYS, JSON))
def test_any_choice_is_a_chunk_or_a_named_failure(choice, part):
    assert is_chunk_or_failure(json.dumps({"choices": [choice | {"delta": part}]}).encode())


@given(st.binary(), st.integers(0, 400))
def test_a_frame_with_foreign_bytes_in_it_is_a_chunk_or_a_named_failure(garbage, position):
    frame = json.dumps(delta("Hi")).encode()
    assert is_chunk_or_failure(frame[:position] + garbage + frame[position:])


@pytest.mark.parametrize("counts", [{}] + [{"prompt_tokens": said} for said in (None, "7", -1, True, 7.5, 2**40)])
def test_counts_that_make_no_sense_are_unknown(counts):
    frame = delta("Hi") | {"usage": counts}
    assert parse_chunk(json.dumps(frame).encode()) == Chunk("Hi", "", None, Usage(None, None, None), is_delta=True)
