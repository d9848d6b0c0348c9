"""How a summary goes on, and what it does not lose."""

from uuid import UUID

from conversations.context.material import Said
from conversations.context.particulars import quotes_left_out
from conversations.context.restating import condensed, continued, tokens_of


def said(*contents):
    roles = ("user", "assistant") * len(contents)
    return [
        Said(UUID(int=number), role, text) for number, (role, text) in enumerate(zip(roles, contents, strict=False))
    ]


def test_the_notes_so_far_stay_byte_for_byte_at_the_beginning():
    notes = "- Ada lives in Rome\n- She has 2 dogs"
    text = continued(notes, "Sure:\n- She moves to Oslo\n- she has 2 dogs", said("I move to Oslo."))
    assert text == notes + "\n- She moves to Oslo"


def test_what_the_model_forgot_follows_in_the_users_words():
    messages = said("We leave on 14 September. The code is KX-7719. It will be fun.", "Lovely, 3 tips: …")
    assert continued("", "- They leave on 14 September", messages) == (
        "- They leave on 14 September\n- “The code is KX-7719.”"
    )


def test_a_number_inside_another_is_not_there():
    assert quotes_left_out(["We are 5 people."], "- call 555-0142") == ["We are 5 people."]
    assert quotes_left_out(["We are 5 people."], "- 5 people") == []


def test_names_are_told_by_their_capitals_where_capitals_tell_names():
    assert quotes_left_out(["My dog is called Brutus."], "- has a dog") == ["My dog is called Brutus."]
    german = ["Mein Hund mag Wasser, Wurst und den Ball im Garten."]
    assert quotes_left_out(german, "- hat einen Hund, der Wasser mag") == []


def test_what_was_forgotten_is_quoted_after_what_is_inexact_but_no_question_is():
    spoken = [
        "Please remember that I am allergic to hazelnuts. What about parking near the lake? We are 5 people. Thanks!"
    ]
    assert quotes_left_out(spoken, "- Ada lives in Rome") == [
        "We are 5 people.",
        "Please remember that I am allergic to hazelnuts.",
    ]
    assert quotes_left_out(spoken, "- 5 people, hazelnut allergy") == []


def test_chinese_sentences_are_quoted_by_their_numbers():
    assert quotes_left_out(["你好。预算8000元。屏幕要14寸。"], "- 屏幕14寸") == ["预算8000元。"]


def test_code_and_long_sentences_are_not_quoted():
    messages = ["```python\nx = 42\n```\n" + "a" * 300 + " 17"]
    assert quotes_left_out(messages, "") == []


def test_few_sentences_are_quoted():
    assert len(quotes_left_out([f"Number {n} is {n * 1000}." for n in range(50)], "")) <= 8


def test_nothing_written_continues_nothing():
    assert continued("- Ada lives in Rome", "I'm sorry, I can't.", said("I have 3 dogs.")) is None


NOTES = "\n".join(
    [
        "- Ada lives in Rome",
        "- The booking code is KX-7719",
        *(
            f"- It was said at some length that topic {each} is easy to arrange{', once one is here' * 4}"
            for each in "abc"
        ),
    ]
)


def test_condensed_notes_are_shorter_and_keep_what_the_model_lost():
    text = condensed(
        NOTES,
        "- Ada lives in Rome\n- Topics are easy to arrange: " + "a, b, c at some length " * 5,
        said("Ok"),
        share_tokens=100,
    )
    assert "KX-7719" in text
    assert "Topics are easy to arrange" in text
    assert len(text) < len(NOTES)


def test_notes_that_were_written_longer_are_not_taken():
    longer = "\n".join(f"{line}, as was said before" for line in NOTES.splitlines())
    text = condensed(NOTES, longer + "\n- Ada moves to Oslo", said("I move to Oslo"), share_tokens=125)
    assert "as was said" not in text
    assert "- Ada moves to Oslo" not in text.splitlines()[0]
    assert len(text) < len(NOTES)


def test_notes_that_could_not_be_condensed_lose_the_ends_of_long_lines_only():
    text = condensed(NOTES, NOTES + "\n- Ada moves to Oslo", said("I move to Oslo"), share_tokens=125)
    lines = text.splitlines()
    assert lines[:2] == ["- Ada lives in Rome", "- The booking code is KX-7719"]
    assert lines[-1] == "- Ada moves to Oslo"
    assert any(line.endswith("…") for line in lines)
    assert tokens_of(text) <= 140


def test_empty_or_refused_condensations_are_refused():
    for written in ("", "<think>hm", "I cannot do that."):
        assert condensed(NOTES, written, said("Ok"), share_tokens=100) is None


def test_a_line_of_which_nothing_is_left_stays_as_it_was():
    notes = NOTES + "\n- She is allergic to hazelnuts"
    written = "- Ada lives in Rome, booking code KX-7719\n- Topics a, b, c are easy to arrange at some length"
    assert "- She is allergic to hazelnuts" in condensed(notes, written, said("Ok"), share_tokens=100).splitlines()
    chinese = NOTES + "\n- 她对榛子过敏"
    assert "- 她对榛子过敏" in condensed(chinese, written, said("Ok"), share_tokens=100).splitlines()


def test_notes_of_too_many_short_lines_lose_some_of_the_middle():
    notes = "\n".join(f"- point {number} of a long list" for number in range(60))
    lines = condensed(notes, "- one point", said("Ok"), share_tokens=140).splitlines()
    assert lines[0] == "- point 0 of a long list"
    assert "- point 59 of a long list" in lines
    assert "- point 20 of a long list" not in lines
    assert tokens_of("\n".join(lines)) <= 140


def test_what_was_said_once_outlives_what_is_said_again_and_again():
    facts = [
        "- My name is Elodie Marchetti",
        "- The budget is 4,350 euros",
        "- We leave on 14 September",
        "- Code KX-7719",
    ]
    chatter = [f"- “turn {turn} of the same talk about the weather, as always”" for turn in range(5, 25)]
    shorter = condensed("\n".join([*facts, *chatter]), "- Nothing much.", [], share_tokens=120)
    assert shorter.splitlines()[: len(facts)] == facts
    assert len(shorter.splitlines()) < 15
