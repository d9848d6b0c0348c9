"""How many tokens a list has, whatever is said in it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.tgi.errors import Misbehaved
from inference.tgi.token_lists import count_of_prompt, count_of_text

TEXTS = st.lists(
    st.text(min_size=1) | st.sampled_from(['"id":', '{"id":1}', "]", "\\", '\\"id":', '\\\\"id":']), min_size=1
)
ADDED = {"id": 1, "text": "", "start": 0, "stop": 0}


def listed(texts):
    return [{"id": number, "text": text, "start": number, "stop": number + 1} for number, text in enumerate(texts)]


def written(value, *, is_compact):
    separators = (",", ":") if is_compact else None
    return json.dumps(value, separators=separators, ensure_ascii=is_compact).encode(errors="replace")


@given(texts=TEXTS, before=st.integers(0, 3), after=st.integers(0, 3), is_compact=st.booleans())
def test_what_is_added_around_a_text_is_not_counted(texts, before, after, is_compact):
    answer = written([ADDED] * before + listed(texts) + [ADDED] * after, is_compact=is_compact)
    assert count_of_text(answer) == len(texts)


@given(texts=TEXTS, is_compact=st.booleans())
def test_a_prompts_tokens_are_counted_whatever_they_say(texts, is_compact):
    answer = {"tokenize_response": [ADDED, *listed(texts)], "templated_text": "".join(texts)}
    assert count_of_prompt(written(answer, is_compact=is_compact)) == len(texts) + 1


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_tokenizer_that_tells_no_offsets_has_all_its_tokens_counted(count):
    assert count_of_text(written([ADDED] * count, is_compact=True)) == count


@pytest.mark.parametrize("answer", [b"", b"<html>", b"{}", b'"x"', b"[", b'[{"id":1', b'{"error":"[1]"}'])
def test_what_is_no_list_is_not_believed(answer):
    with pytest.raises(Misbehaved):
        count_of_text(answer)
    with pytest.raises(Misbehaved):
        count_of_prompt(answer)
