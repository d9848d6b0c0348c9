"""Whatever a model answers, some decent title comes of it."""

import pytest
import regex

from conversations.context.titles import MOST_TITLE_CHARACTERS, first_words, prompt_for_title, title_from

QUESTION = "What is the best way to cook rice?"
ESSAY = "The best way to cook rice is to rinse it, to put it into a pot with twice as much water, and to wait. " * 9


@pytest.mark.parametrize(
    "written",
    [
        "Cooking rice",
        '"Cooking rice"',
        "'Cooking rice'",
        "“Cooking rice”",
        "„Cooking rice“",
        "«Cooking rice»",
        "「Cooking rice」",
        "Cooking rice.",
        "  Cooking   rice \n",
        "Title: Cooking rice",
        "title - x: Cooking rice",
        "Title:\nCooking rice",
        'Conversation title: "Cooking rice"',
        "Titel: Cooking rice",
        "标题：Cooking rice",
        "**Cooking rice**",
        "**Title:** Cooking rice",
        "# Cooking rice",
        "- Cooking rice",
        "1. Cooking rice\n2. Rice, and how to cook it",
        "`Cooking rice`",
        "[Cooking rice](https://example.com)",
        "<title>Cooking rice</title>",
        "<|im_start|>Cooking rice<|im_end|>",
        "Cooking rice\n\nThis title says what the conversation is about.",
        "# Cooking rice\n\n" + ESSAY,
        "Sure! Here is a title:\n\n**Cooking rice**",
        "Here is a title: Cooking rice",
        "Cooking\u202e rice\u2066",
        "\ufeffCooking\u200b rice\x07",
        "Cook\0ing rice",
    ],
)
def test_a_title_is_freed_of_what_is_no_part_of_it(written):
    assert title_from(written, QUESTION) == "Cooking rice"


@pytest.mark.parametrize(
    "written",
    [
        "<think>Perhaps 'Food'?</think>Cooking rice",
        "<think>One.</think>\n<think>Two: 'Food'.</think>\nCooking rice",
        "They ask about food.</think>\n\nCooking rice",
        "Cooking rice\n<think>Or is 'Food' better",
    ],
)
def test_a_title_is_never_what_the_model_thought(written):
    assert title_from(written, QUESTION) == "Cooking rice"


@pytest.mark.parametrize(
    "written",
    [
        '{"title": "Cooking rice"}',
        '{"language": "en", "title": "Cooking rice"}',
        '{"result": {"conversation_title": "Cooking rice"}}',
        '["Cooking rice", "Food"]',
        '[{"name": "Cooking rice"}]',
        '```json\n{"title": "Cooking rice"}\n```',
        'Here it is:\n{"title": "Cooking rice"}',
        '{"title": "Cooking rice"',
        '{"title": "Cooking rice',
        "{'title': 'Cooking rice'}",
        '["Cooking rice"',
        '"title": "Cooking rice"',
    ],
)
def test_a_title_is_taken_out_of_json_whole_or_broken(written):
    assert title_from(written, QUESTION) == "Cooking rice"


@pytest.mark.parametrize(
    "written",
    [
        "",
        " \n\t\n",
        "...",
        "Title:",
        "Untitled",
        '""',
        "null",
        "{}",
        "[]",
        '{"title": null}',
        '{"title": ""}',
        '{"a":' * 3000,
        "[" * 3000,
        "<think>Cooking rice, or",
        "<think>Cooking rice</think>",
        "```python\nprint('rice')\n```",
        "```python\nprint('rice')",
        ESSAY,
        "I'm sorry, but I can't help with that.",
        "I cannot name this.",
        "Lo siento, no puedo.",
        "Sure! I can do that.",
        "\u202e\u2066\u200b",
    ],
)
def test_what_is_no_title_leaves_the_questions_first_words(written):
    assert title_from(written, QUESTION) == QUESTION


@pytest.mark.parametrize(
    ("written", "question"),
    [
        ("Cooking rice", "怎么煮米饭？"),
        ("Cooking rice", "ご飯の炊き方を教えてください"),
        ("How asyncio works", "Как работает asyncio?"),
        ("Готовка риса", QUESTION),
        ("煮米饭", QUESTION),
        ("밥 짓기", "怎么煮米饭？"),
    ],
)
def test_a_title_in_another_script_than_the_questions_is_not_taken(written, question):
    assert title_from(written, question) == question


@pytest.mark.parametrize(
    ("written", "question"),
    [
        ("煮米饭的方法", "怎么煮米饭？"),
        ("东京旅行", "東京へ旅行したいです"),
        ("Python asyncio", "Как работает Python asyncio?"),
        ("解释一段代码", "请解释 def foo(a, b): return a + b  # adds two numbers, then returns them"),
        ("Meaning of 你好", "What does 你好 mean?"),
        ("🍚🍚", "🍚?"),
        ("Rice", "🍚?"),
    ],
)
def test_a_title_in_the_questions_scripts_is_taken(written, question):
    assert title_from(written, question) == written


@pytest.mark.parametrize("cluster", ["a", "é", "e\u0301", "👩‍👩‍👧", "🇫🇷", "नि", "각"])
def test_a_long_title_is_cut_between_graphemes(cluster):
    title = title_from(cluster * (100 // len(cluster)), QUESTION + cluster)
    assert len(title) <= MOST_TITLE_CHARACTERS
    whole = title.removesuffix("…")
    assert whole
    assert set(regex.findall(r"\X", whole)) == {cluster}


def test_marks_without_end_do_not_leave_an_empty_title():
    assert title_from("Z" + "\u0335" * 500 + "algo", QUESTION).startswith("Z")
    assert first_words("Z" + "\u0335" * 500, MOST_TITLE_CHARACTERS).startswith("Z")


def test_words_in_quotes_keep_them():
    assert title_from('"Salt" and "Pepper"', QUESTION) == '"Salt" and "Pepper"'
    assert title_from("__init__ in Python", QUESTION) == "__init__ in Python"
    assert title_from("C++ vs. Rust", QUESTION) == "C++ vs. Rust"
    assert title_from("Why?", QUESTION) == "Why?"


@pytest.mark.parametrize("question", ["", " ", "\u200b", "\u202e\0"])
def test_even_a_question_without_words_gives_a_title(question):
    assert title_from("", question) == "Conversation"


def test_first_words_are_one_line_of_what_can_be_seen():
    assert first_words("one\n\ttwo\u2028three\u202efour", 80) == "one two threefour"


def test_only_the_last_message_of_the_prompt_is_the_conversations():
    one, other = prompt_for_title("One", "1"), prompt_for_title("Other", "2")
    assert one[:-1] == other[:-1]
    assert one[-1].role == "user"
    assert "One" in one[-1].content


def test_the_prompt_is_bounded_and_shows_no_thoughts():
    prompt = prompt_for_title("q" * 100_000, "<think>secret</think>" + "a" * 100_000)
    assert len(prompt[-1].content) < 4_000
    assert "secret" not in prompt[-1].content
