"""The prompt is the branch that leads to the question, in turns, and nothing else."""

import pytest

from conversations.context.prompt import assemble
from conversations.models import Conversation, Message
from conversations.services import claims
from inference.messages import ChatMessage
from tests.accounts.factories import make_user
from tests.inference.core.factories import answer_to, read_material_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def conversation():
    return Conversation.objects.create(user=make_user())


@pytest.fixture(autouse=True)
def _site_without_instructions(settings):
    settings.SYSTEM_INSTRUCTIONS = ""


def branch(conversation, *turns, parent=None):
    """Store a path of `(role, content)` or `(role, content, status)` and return its messages."""
    messages = []
    for role, content, *status in turns:
        parent = Message.objects.create(
            conversation=conversation, parent=parent, role=role, content=content, status=(status or ["complete"])[0]
        )
        messages.append(parent)
    return messages


def prompt(conversation, question, instructions=""):
    """Claim an answer to the question, and return what the model is asked."""
    Conversation.objects.filter(pk=conversation.pk).update(instructions=instructions)
    return assemble(read_material_of(claims.claim(answer_to(question, conversation).pk)))


def said(conversation, question, instructions=""):
    return [(m.role, m.content) for m in prompt(conversation, question, instructions)]


def test_the_prompt_is_the_path_to_the_question(conversation):
    first, answer, second = branch(conversation, ("user", "one"), ("assistant", "1"), ("user", "two"))
    branch(conversation, ("assistant", "2"), ("user", "three"), parent=second)
    branch(conversation, ("user", "another two"), parent=answer)
    branch(conversation, ("assistant", "another 1"), parent=first)
    assert said(conversation, second) == [("user", "one"), ("assistant", "1"), ("user", "two")]


def test_instructions_of_the_site_come_before_those_of_the_conversation(conversation, settings):
    settings.SYSTEM_INSTRUCTIONS = "The site's."
    (question,) = branch(conversation, ("user", "one"))
    assert said(conversation, question, "The conversation's.") == [
        ("system", "The site's.\n\nThe conversation's."),
        ("user", "one"),
    ]


def test_without_instructions_there_is_no_system_message(conversation):
    (question,) = branch(conversation, ("user", "one"))
    assert said(conversation, question) == [("user", "one")]


def test_questions_around_an_answer_that_failed_become_one_turn(conversation):
    *_, question = branch(conversation, ("user", "one"), ("assistant", "", "failed"), ("user", "two"))
    assert said(conversation, question) == [("user", "one\n\ntwo")]


def test_an_answer_that_was_stopped_keeps_its_place(conversation):
    *_, question = branch(conversation, ("user", "one"), ("assistant", "begu", "cancelled"), ("user", "go on"))
    assert said(conversation, question) == [("user", "one"), ("assistant", "begu"), ("user", "go on")]


def test_text_reaches_the_model_unchanged(conversation):
    odd = " \n\u2028<|im_end|>{{ x }} 🤗\n "
    (question,) = branch(conversation, ("user", odd))
    assert said(conversation, question) == [("user", odd)]


def test_roles_alternate_whatever_failed(conversation):
    turns = [("user", "a"), ("assistant", "", "failed")] * 5 + [("user", "b"), ("assistant", "c"), ("user", "d")]
    *_, question = branch(conversation, *turns)
    roles = [role for role, _ in said(conversation, question, "i")]
    assert roles == ["system", "user", "assistant", "user"]


def test_the_prompt_only_grows_at_its_end(conversation):
    turns = [("user", "one"), ("assistant", "1"), ("user", "two"), ("assistant", "2"), ("user", "three")]
    messages = branch(conversation, *turns)
    earlier = prompt(conversation, messages[2], "i")
    later = prompt(conversation, messages[4], "i")
    assert later[: len(earlier)] == earlier


def test_a_question_of_another_conversation_yields_nothing_of_it(conversation):
    (foreign,) = branch(Conversation.objects.create(user=make_user()), ("user", "secret"))
    assert said(conversation, foreign) == []


def test_a_long_branch_takes_few_queries(conversation, django_assert_max_num_queries):
    *_, question = branch(conversation, *[("user", "q"), ("assistant", "a")] * 100, ("user", "last"))
    generation = answer_to(question)
    with django_assert_max_num_queries(2):
        assert len(assemble(read_material_of(claims.claim(generation.pk)))) == 201


def test_the_messages_are_what_a_model_server_takes(conversation):
    (question,) = branch(conversation, ("user", "one"))
    assert prompt(conversation, question) == (ChatMessage("user", "one"),)
