"""Thoughts inside a model's text."""

import pytest

from conversations.context.thoughts import without_thoughts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<think>hm</think>Yes", "Yes"),
        ("<think>a</think>One<think>b</think> two", "One two"),
        ("It was thought before.</think>\nYes", "Yes"),
        ("Yes<think>and it never ends", "Yes"),
        ("<THINK>\nloud\n</THINK>\n\nYes", "Yes"),
        ("<think>outer <think>inner</think> outer</think>Yes", "Yes"),
        ("<think>only this", ""),
        ("a < b, think > c", "a < b, think > c"),
    ],
)
def test_only_what_is_said_stays(text, said):
    assert without_thoughts(text) == said
