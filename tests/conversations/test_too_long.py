"""What is too long for a model is refused before anything is written or anybody is asked to answer."""

import socket

import pytest

from accounts import quotas
from conversations.context.fitting import budget_of
from conversations.exceptions import ContentTooLong, InvalidRequest
from conversations.models import Conversation, Generation, Message, Preference
from conversations.services import conversations, messages, preferences
from conversations.services.instructions import check_standing_instructions
from conversations.services.messages import NewMessage
from foundation.redis import shared_client
from inference import queue
from inference.fleet_seeding import apply_fleet
from inference.models import ModelAlias, ModelVersion
from inference.stored_catalog import forget_catalog
from inference.template_tokens import SUPPOSED
from inference.testing.pieces import count_pieces
from inference.testing.processes import twin_process
from inference.testing.requests import render_chat
from inference.testing.settings import TwinSettings
from tests.accounts.factories import make_user
from tests.conversations.api.conftest import Caller
from tests.conversations.api.errors import error_of
from tests.inference.fleet.reports import report

pytestmark = pytest.mark.django_db

WINDOW = 1000
BUDGET = budget_of(WINDOW, 4096)
LIMIT = WINDOW // 2
SITE = "You are a helpful assistant."
AWAY = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def twin():
    with twin_process(TwinSettings(max_input_tokens=WINDOW - 1, max_total_tokens=WINDOW)) as twin:
        yield twin


@pytest.fixture(autouse=True)
def fleet(settings, twin):
    """A large model that nobody can reach stands in for none; the small one is the default."""
    settings.SYSTEM_INSTRUCTIONS = SITE
    settings.MAX_ANSWER_TOKENS = 8192
    apply_fleet(f"small={twin.url};large={AWAY}")
    forget_catalog()
    report(twin.url, max_total_tokens=WINDOW)
    report(AWAY, is_healthy=False, max_total_tokens=8 * WINDOW)
    twin.reset()
    yield
    forget_catalog()


@pytest.fixture
def alice():
    return make_user("alice@example.com", tier="plus")


@pytest.fixture
def lonely_server():
    """The only one there is, and nobody may ask it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        apply_fleet(f"small={url}")
        forget_catalog()
        report(url, max_total_tokens=WINDOW)
        yield server


def was_asked(server):
    try:
        server.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def words(count):
    return "word" + " word" * (count - 1)


def room_beside(*instructions):
    """How many words of one token each fit beside instructions, by the server's own count of the whole prompt."""
    prompt = [{"role": "system", "content": "\n\n".join(instructions)}, {"role": "user", "content": "word"}]
    return BUDGET - count_pieces(render_chat(prompt).text) + 1


def say(user, content, conversation_id=None, **fields):
    return messages.send(user=user, conversation_id=conversation_id, message=NewMessage(content, **fields))


class TestAMessage:
    def test_it_is_refused_with_the_exact_numbers(self, alice):
        with pytest.raises(ContentTooLong) as refused:
            say(alice, words(2000))
        limit = room_beside(SITE)
        over = 2000 - limit
        assert refused.value.details == {"tokens": 2000, "limit": limit, "over": over}
        assert refused.value.message == f"The message has 2,000 tokens; {limit} fit: {over:,} too many."
        assert refused.value.param == "content"

    def test_nothing_is_stored_counted_or_computed_for_it(self, alice, twin):
        before = quotas.peek(alice).requests
        conversation = conversations.create(user=alice)
        for conversation_id in (None, conversation.pk):
            with pytest.raises(ContentTooLong):
                say(alice, words(2000), conversation_id)
        assert not Message.objects.exists()
        assert not Generation.objects.exists()
        assert Conversation.objects.count() == 1
        assert quotas.peek(alice).requests_remaining == before.remaining
        assert queue.waiting_count(shared_client()) == 0
        assert not twin.report()["requests"]

    def test_one_that_just_fits_is_let_in(self, alice):
        limit = room_beside(SITE)
        assert say(alice, words(limit)).answer
        with pytest.raises(ContentTooLong) as refused:
            say(alice, words(limit + 1))
        assert refused.value.details == {"tokens": limit + 1, "limit": limit, "over": 1}

    def test_the_instructions_of_the_conversation_and_the_user_take_their_room(self, alice):
        Preference.objects.create(user=alice, instructions=words(100))
        conversation = conversations.create(user=alice, instructions=words(150))
        with pytest.raises(ContentTooLong) as refused:
            say(alice, words(700), conversation.pk)
        assert refused.value.details["limit"] == room_beside(SITE, words(100), words(150))

    def test_where_the_instructions_alone_are_too_long_the_message_is_not_blamed(self, alice):
        conversation = conversations.create(user=alice, instructions=words(400))
        Preference.objects.create(user=alice, instructions=words(400))
        with pytest.raises(ContentTooLong, match="The message and the instructions have") as refused:
            say(alice, words(300), conversation.pk)
        beside = room_beside(SITE, words(400), words(400))
        assert refused.value.details == {"tokens": BUDGET - beside + 300, "limit": BUDGET, "over": 300 - beside}

    def test_a_short_answer_leaves_more_room(self, alice):
        assert say(alice, words(900), options={"max_tokens": 10}).answer

    def test_the_window_is_that_of_the_model_that_is_asked(self, alice):
        assert say(alice, words(2000), model="large").answer

    def test_what_nobody_can_count_is_let_in(self, alice):
        assert say(alice, words(20_000), model="large").answer

    def test_a_short_message_asks_nobody(self, alice, lonely_server):
        assert say(alice, words(50)).answer
        assert not was_asked(lonely_server)

    def test_one_that_fits_by_its_bytes_asks_nobody(self, alice, lonely_server):
        template = SUPPOSED.base + 2 * SUPPOSED.per_message
        assert say(alice, "x" * (BUDGET - template - len(SITE))).answer
        assert not was_asked(lonely_server)

    def test_a_server_that_fails_while_it_counts_stops_no_message(self, alice, twin):
        twin.switch_on("status", status=500, path="/chat_tokenize")
        assert say(alice, words(2000)).answer

    def test_a_strangers_conversation_is_not_there_however_long_the_message(self, alice):
        conversation = conversations.create(user=make_user("charlie@example.com"))
        with pytest.raises(messages.NotFound):
            say(alice, words(2000), conversation.pk)

    def test_a_program_is_told_413_and_the_numbers(self, client, alice):
        caller = Caller(client, alice)
        path = f"/v1/conversations/{caller.conversation()}/messages"
        refused = error_of(caller.post(path, {"content": words(2000)}), 413, "content_too_long")
        assert set(refused["details"]) == {"tokens", "limit", "over"}
        assert refused["param"] == "content"


class TestInstructions:
    def test_those_that_leave_too_little_room_are_refused_when_saved(self, alice):
        with pytest.raises(InvalidRequest) as refused:
            conversations.create(user=alice, instructions=words(800))
        tokens = count_pieces(SITE) + 2 + 800
        assert f"have {tokens} tokens; {LIMIT} are allowed with the model small" in refused.value.message
        assert refused.value.param == "instructions"
        assert not Conversation.objects.exists()

    def test_a_program_is_told_422_and_the_field(self, client, alice):
        caller = Caller(client, alice)
        refused = error_of(caller.post("/v1/conversations", {"instructions": words(800)}), 422, "invalid_request")
        assert refused["param"] == "instructions"
        path = f"/v1/conversations/{caller.conversation()}"
        refused = error_of(caller.patch(path, {"instructions": words(800)}), 422, "invalid_request")
        assert refused["param"] == "instructions"

    def test_standing_ones_are_refused_when_saved(self, alice):
        with pytest.raises(InvalidRequest):
            preferences.change(user=alice, changes={"instructions": words(800)})
        assert preferences.preference_of(alice.pk).instructions == ""

    def test_they_may_have_half_of_the_window(self, alice):
        most = LIMIT - count_pieces(SITE) - 2
        conversation = conversations.create(user=alice, instructions=words(most))
        changes = {"instructions": words(most + 1)}
        with pytest.raises(InvalidRequest):
            conversations.change(user=alice, conversation_id=conversation.pk, changes=changes)
        conversation.refresh_from_db()
        assert conversation.instructions == words(most)

    def test_the_users_standing_ones_count_too(self, alice):
        Preference.objects.create(user=alice, instructions=words(300))
        with pytest.raises(InvalidRequest):
            conversations.create(user=alice, instructions=words(300))

    def test_a_model_for_which_they_are_too_long_is_not_chosen(self, alice):
        conversation = conversations.create(user=alice, model="large", instructions=words(800))
        with pytest.raises(InvalidRequest) as refused:
            conversations.change(user=alice, conversation_id=conversation.pk, changes={"model": "small"})
        assert refused.value.param == "model"

    def test_the_model_that_may_stand_in_must_have_room_for_them(self, alice):
        ModelAlias.objects.filter(name="large").update(fallback=ModelAlias.objects.get(name="small"))
        forget_catalog()
        with pytest.raises(InvalidRequest):
            conversations.create(user=alice, model="large", instructions=words(800))

    def test_other_changes_ask_nobody(self, alice, lonely_server):
        conversation = conversations.create(user=alice, instructions=words(50))
        Conversation.objects.filter(pk=conversation.pk).update(instructions=words(800))
        assert conversations.change(user=alice, conversation_id=conversation.pk, changes={"pinned": True}).pinned
        assert not was_asked(lonely_server)

    def test_standing_ones_must_leave_room_in_every_model(self):
        check_standing_instructions(words(400))
        with pytest.raises(InvalidRequest) as refused:
            check_standing_instructions(words(800))
        assert refused.value.param == "instructions"

    def test_nothing_is_refused_while_no_window_is_known(self, alice):
        apply_fleet(f"small={AWAY}2")
        forget_catalog()
        assert conversations.create(user=alice, instructions=words(3000)).pk

    def test_a_version_that_names_its_window_needs_no_worker(self, alice, twin):
        apply_fleet(f"small={twin.url}")
        ModelVersion.objects.filter(name="small").update(context_tokens=100)
        forget_catalog()
        with pytest.raises(InvalidRequest):
            conversations.create(user=alice, instructions=words(60))
