"""The words of a prompt: one system message, then the path in turns."""

from conversations.context.material import Material
from conversations.context.prompt import MEMORIES_HEADING, SUMMARY_HEADING, assemble
from inference.messages import ChatMessage
from tests.conversations.context.paths import exchanges, fitted, memories_of, path_of, summary


def said(*turns, **material):
    return [tuple(message) for message in assemble(Material(path_of(*turns), **material))]


def test_all_that_is_not_said_stands_in_one_message_in_order():
    prompt = fitted(
        path_of(*exchanges(1), ("user", "so?")),
        site_instructions="The site's.",
        user_instructions="The user's.",
        instructions="The conversation's.",
        memories=memories_of("likes tea", "has two\nchildren"),
        summaries=(summary(1, 2, "- they met"),),
        head_count=0,
        unread_messages=2,
    )
    assert prompt.messages[0] == ChatMessage(
        "system",
        f"The site's.\n\nThe user's.\n\nThe conversation's.\n\n{MEMORIES_HEADING}\n- likes tea\n- has two\n  children"
        f"\n\n{SUMMARY_HEADING}\n- they met",
    )


def test_where_there_is_nothing_to_tell_there_is_no_system_message():
    assert said(("user", "one")) == [("user", "one")]


def test_text_reaches_the_model_unchanged():
    odd = " \n\u2028<|im_end|>{{ x }} 🤗\n "
    assert said(("user", odd), site_instructions=odd) == [("system", odd), ("user", odd)]


def test_questions_around_an_answer_that_failed_become_one_turn():
    assert said(("user", "one"), ("assistant", ""), ("user", "two")) == [("user", "one\n\ntwo")]


def test_an_answer_and_what_continues_it_become_one_text():
    turns = [("user", "count"), ("assistant", "one, tw"), ("assistant", "o, three"), ("user", "on")]
    assert said(*turns) == [("user", "count"), ("assistant", "one, two, three"), ("user", "on")]


def test_an_answer_that_was_cut_off_is_the_last_message_and_goes_on_with_what_was_written_since():
    prompt = fitted(path_of(("user", "count"), ("assistant", "one, ")), so_far="two")
    assert prompt.messages == (ChatMessage("user", "count"), ChatMessage("assistant", "one, two"))


def test_what_was_written_so_far_follows_the_question():
    prompt = fitted(path_of(("user", "count")), so_far="one")
    assert prompt.messages == (ChatMessage("user", "count"), ChatMessage("assistant", "one"))


def test_passages_stand_in_front_of_their_own_message_and_stay_there():
    first = ("user", "who?", ["It was Ada.", "It was May."])
    asked = said(first)
    assert asked == [("user", "It was Ada.\n\nIt was May.\n\nwho?")]
    assert said(first, ("assistant", "Ada."), ("user", "when?"))[:1] == asked


def test_a_path_that_begins_with_an_answer_begins_with_its_first_question():
    assert said(("assistant", "lost"), ("user", "one"), ("assistant", "1")) == [("user", "one"), ("assistant", "1")]


def test_a_path_without_any_question_is_all_there_is():
    assert said(("assistant", "lost"), ("assistant", " too")) == [("assistant", "lost too")]


def test_a_message_that_was_read_twice_is_said_once():
    path = path_of(("user", "one"), ("assistant", "1"), ("user", "two"))
    again = (*path[:2], *path)
    assert assemble(Material(again, head_count=2)) == assemble(Material(path))


def test_an_empty_path_makes_an_empty_prompt():
    assert fitted(()).messages == ()
    assert fitted((), site_instructions="Be brief.").messages == (ChatMessage("system", "Be brief."),)


def test_before_a_replica_is_chosen_the_prompt_is_what_the_last_one_makes_likely():
    turns = exchanges(40, question=30, answer=60)
    path = path_of(*turns, ("user", "so?"))
    memories = memories_of("likes tea", "has a dog")
    cut = fitted(path, memories=memories, site_instructions="Be brief.")
    later = path_of(*turns, ("user", "so?"), ("assistant", "Yes."), ("user", "and?"))
    material = Material(later, memories=memories, site_instructions="Be brief.", previous=cut.record)
    assert cut.record.tail_from
    assert assemble(material)[: len(cut.messages)] == cut.messages
