"""The nodes of ChatGPT's exports, of which most were never seen by anybody."""

import json

import pytest

from conversations import queries
from conversations.models import Conversation, Errand, Generation, Memory, Message
from conversations.services.imports.cleaned_json import CHUNK_BYTES
from tests.accounts.factories import make_user
from tests.conversations.transfers.chatgpt_export import chain, conversation, node
from tests.conversations.transfers.conftest import bring


def shown(user) -> list[tuple[str, str]]:
    """What is said on the shown branch of the user's only conversation."""
    only = Conversation.objects.get(user=user)
    return [(message.role, message.content) for message in queries.active_branch(only)]


def test_a_conversation_is_imported_with_its_times_and_title(alice):
    brought = bring(alice, [chain(4, title="Tea in Ghent")])
    assert brought.status == "done"
    assert brought.outcomes == [("imported", None)]
    only = Conversation.objects.get(user=alice)
    assert (only.title, only.created_at.year, only.is_title_chosen) == ("Tea in Ghent", 2023, True)
    assert shown(alice) == [
        ("user", "Message 0"),
        ("assistant", "Message 1"),
        ("user", "Message 2"),
        ("assistant", "Message 3"),
    ]


def test_an_import_starts_no_generation_no_errand_and_writes_no_memory(alice):
    bring(alice, [conversation(node("a", None, parts=["Remember that I am vegan."]), node("b", "a", "assistant"))])
    assert Message.objects.count() == 2
    assert not Generation.objects.exists()
    assert not Errand.objects.exists()
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    "hidden",
    [
        node("h", "a", parts=None),
        node("h", "a", "system", ["You are"]),
        node("h", "a", "tool", ["4"], content={"content_type": "execution_output", "text": "4"}),
        node("h", "a", "tool", content={"content_type": "tether_quote", "text": "quoted", "url": "x"}),
        node("h", "a", "assistant", weight=0),
        node("h", "a", "assistant", weight=0.0),
        node("h", "a", "assistant", []),
        node("h", "a", "assistant", [""]),
        node("h", "a", "assistant", content={"content_type": "thoughts", "thoughts": [{"summary": "s"}]}),
        node("h", "a", "assistant", content={"content_type": "reasoning_recap", "content": "Thought for 5 s"}),
        node("h", "a", "assistant", content={"content_type": "code", "text": "2+2"}, recipient="python"),
        node("h", "a", "user", metadata={"is_visually_hidden_from_conversation": True}),
        node("h", "a", "assistant", content=None),
        node("h", "a", "assistant", content="no mapping"),
    ],
)
def test_what_nobody_saw_is_left_out_and_the_chain_stays_whole(alice, hidden):
    bring(alice, [conversation(node("a", None, parts=["Q"]), hidden, node("b", "h", "assistant", ["A"]))])
    assert shown(alice) == [("user", "Q"), ("assistant", "A")]
    assert Message.objects.count() == 2


def test_messages_without_author_or_metadata_are_read(alice):
    first, second = node("a", None, parts=["Q"]), node("b", "a", "assistant", ["A"])
    del first[1]["message"]["author"], first[1]["message"]["metadata"], second[1]["message"]["metadata"]
    bring(alice, [conversation(first, second)])
    assert shown(alice) == [("user", "Q"), ("assistant", "A")]


def test_parts_that_are_no_text_are_named(alice):
    parts = [{"content_type": "image_asset_pointer", "asset_pointer": "file-1"}, "What is this?", {"x": 1}, None, 5]
    content = {"content_type": "multimodal_text", "parts": parts}
    bring(alice, [conversation(node("a", None, content=content))])
    assert shown(alice) == [("user", "[Image]\n\nWhat is this?")]


def test_the_branch_that_was_shown_is_shown_though_it_is_not_the_longest(alice):
    tree = conversation(
        node("a", None, parts=["Q"]),
        node("b", "a", "assistant", ["short"]),
        node("c", "a", "assistant", ["long"]),
        node("d", "c", "user", ["more"]),
        node("e", "d", "assistant", ["and more"]),
        current="b",
    )
    bring(alice, [tree])
    assert shown(alice) == [("user", "Q"), ("assistant", "short")]
    assert Message.objects.count() == 5


def test_the_parts_of_one_turn_are_one_message_on_each_branch(alice):
    tree = conversation(
        node("a", None, parts=["Q"]),
        node("b", "a", "assistant", ["I look it up."]),
        node("t", "b", "tool", ["found"]),
        node("c", "t", "assistant", ["It is 4."]),
        node("d", "t", "assistant", ["It is 5."]),
    )
    bring(alice, [tree])
    assert shown(alice) == [("user", "Q"), ("assistant", "I look it up.\n\nIt is 5.")]
    assert Message.objects.filter(content="I look it up.\n\nIt is 4.").exists()
    assert Message.objects.count() == 3


def test_a_circle_a_missing_parent_and_a_parent_of_itself_lose_no_message(alice):
    tree = conversation(
        node("a", "b", parts=["one"]),
        node("b", "a", "assistant", ["two"]),
        node("c", "nowhere", parts=["three"]),
        node("d", "d", parts=["four"]),
    )
    assert bring(alice, [tree]).outcomes == [("imported", None)]
    assert set(Message.objects.values_list("content", flat=True)) == {"one", "two", "three", "four"}


def test_of_two_nodes_with_one_id_the_last_counts(alice):
    text = json.dumps([conversation(node("a", None, parts=["first"]), node("b", None, parts=["second"]))])
    bring(alice, text.replace('"b"', '"a"').encode())
    assert shown(alice) == [("user", "second")]


@pytest.mark.parametrize("time", [None, -5, -1e18, 1e30, "yesterday", "2023", True, [], 0])
def test_a_time_that_cannot_be_is_that_of_the_message_above(alice, time):
    bring(alice, [conversation(node("a", None), node("b", "a", "assistant", create_time=time))])
    assert {message.created_at.year for message in Message.objects.all()} == {2023}


def test_inverted_times_do_not_bring_an_answer_before_its_question(alice):
    bring(alice, [conversation(node("a", None, create_time=1_700_000_999), node("b", "a", "assistant", create_time=1))])
    question, answer = Message.objects.order_by("pk")
    assert answer.parent_id == question.pk


def test_ids_follow_the_tree_and_then_the_time(alice):
    tree = conversation(
        node("late", "a", "assistant", ["late"], create_time=1_700_000_900),
        node("early", "a", "assistant", ["early"], create_time=1_700_000_500),
        node("a", None, parts=["Q"], create_time=1_700_000_100),
    )
    bring(alice, [tree])
    assert list(Message.objects.order_by("pk").values_list("content", flat=True)) == ["Q", "early", "late"]


@pytest.mark.django_db(transaction=True)  # long enough for its lease to be renewed, by another connection
def test_a_chain_of_very_many_nodes_is_imported(transactional_db):
    alice = make_user()
    assert bring(alice, [chain(20_000)]).outcomes == [("imported", None)]
    assert Message.objects.count() == 20_000
    assert shown(alice)[-1] == ("assistant", "Message 19999")


def test_a_very_long_chain_of_one_side_is_one_message(alice):
    nodes = [node(f"n{number}", f"n{number - 1}" if number else None, parts=["x"]) for number in range(5_000)]
    bring(alice, [conversation(*nodes)])
    assert shown(alice) == [("user", "\n\n".join(["x"] * 5_000))]


@pytest.mark.parametrize(
    ("escaped", "read"),
    [
        (r"\ud83c\udf78", "🍸"),
        (r"a\ud83cb", "a�b"),
        (r"a\udf78b", "a�b"),
        (r"\udf78\ud83c", "��"),
        (r"\ud83c\ud83c\udf78", "�🍸"),
        (r"\\ud83c", r"\ud83c"),
        (r"\\\ud83c", "\\�"),
        (r"a\u0000b", "a�b"),
        (r"\uD83C\uDF78", "🍸"),
    ],
)
@pytest.mark.parametrize("before", [0, CHUNK_BYTES - 136, CHUNK_BYTES - 9])
def test_halves_of_characters_are_joined_or_replaced(alice, escaped, read, before):
    text = json.dumps([conversation(node("a", None, parts=["@"]))])
    padding = "x" * before
    bring(alice, text.replace("@", f"{padding}{escaped}").encode())
    assert shown(alice) == [("user", padding + read)]


def test_an_escape_that_lies_across_two_pieces_of_the_file_is_read(alice):
    text = json.dumps([conversation(node("a", None, parts=["@"]))])
    start = text.index("@")
    for shift in range(16):
        padding = "x" * (CHUNK_BYTES - start - shift)
        Conversation.objects.all().delete()
        bring(alice, text.replace("@", padding + r"\ud83c\udf78\udf78").encode())
        assert shown(alice) == [("user", padding + "🍸�")]


def test_a_stopped_answer_and_one_that_was_too_long_can_be_continued(alice):
    tree = conversation(
        node("a", None),
        node("b", "a", "assistant", ["stop"], status="in_progress"),
        node("c", "a", "assistant", ["long"], metadata={"finish_details": {"type": "max_tokens"}, "model_slug": "gpt"}),
    )
    bring(alice, [tree])
    ends = Message.objects.filter(role="assistant").order_by("pk").values_list("status", "finish_reason", "model")
    assert list(ends) == [("cancelled", "cancelled", ""), ("complete", "length", "gpt")]


def test_one_conversation_alone_is_imported(alice):
    assert bring(alice, chain(2)).outcomes == [("imported", None)]


def test_a_conversation_without_an_id_is_known_by_what_it_says(alice):
    nameless = chain(2)
    del nameless["conversation_id"]
    assert bring(alice, [nameless]).outcomes == [("imported", None)]
    assert bring(alice, [nameless]).outcomes == [("skipped", "It is there already.")]
