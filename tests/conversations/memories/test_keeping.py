"""What is remembered of a user, and what is not."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Tier
from conversations.exceptions import InvalidRequest, MemoriesFull, NotFound
from conversations.models import Conversation, Memory, Message
from conversations.services import conversations, memories, preferences
from conversations.services.messages import NewMessage, send
from tests.accounts.factories import make_tier, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return make_user("alice@example.com")


def contents(user, **which):
    return list(Memory.objects.owned_by(user.pk).filter(**which).order_by("id").values_list("content", flat=True))


def in_force(user):
    return [memory.content for memory in Memory.objects.owned_by(user.pk).order_by("id") if memory.is_in_force]


def notices_of(user, content, **fields):
    return send(user=user, conversation_id=None, message=NewMessage(content, **fields)).generation.notices


def message_of(user, **fields):
    conversation = Conversation.objects.create(user=user, **fields)
    return Message.objects.create(conversation=conversation, role="user", content="Hello")


def aged(memory, **ago):
    """Let all that was done with a memory be so long ago."""
    then = timezone.now() - timedelta(**ago)
    Memory.objects.filter(pk=memory.pk).update(created_at=then, updated_at=then, reviewed_at=then)
    memory.refresh_from_db()
    return memory


def test_what_a_user_writes_is_in_force_on_one_line(alice):
    kept = memories.create(user=alice, content="  I live\n\tin Ghent. ")
    assert kept.is_new
    assert in_force(alice) == ["I live in Ghent."]
    assert kept.memory.origin == Memory.Origin.WRITTEN


@pytest.mark.parametrize("content", ["", "  \n ", "a\x00b", "\ud800"])
def test_what_cannot_be_kept_is_refused_and_names_the_field(alice, content):
    with pytest.raises(InvalidRequest) as refused:
        memories.create(user=alice, content=content)
    assert refused.value.param == "content"
    assert contents(alice) == []


def test_a_memory_has_at_most_so_many_tokens_and_is_told_how_many(alice, settings):
    settings.MOST_MEMORY_TOKENS = 10
    memories.create(user=alice, content="a" * 10)
    with pytest.raises(InvalidRequest, match=r"up to 24 tokens; 10 tokens are allowed"):
        memories.create(user=alice, content="日本語で書かれた")
    with pytest.raises(InvalidRequest, match=r"201 characters; 10 tokens are allowed"):
        memories.create(user=alice, content="a" * 201)


def test_a_user_has_at_most_so_many_memories(alice, settings):
    settings.MOST_MEMORIES = 2
    first = memories.create(user=alice, content="One of them").memory
    memories.create(user=alice, content="Two of them")
    with pytest.raises(MemoriesFull, match="You have 2 memories; 2 are allowed"):
        memories.create(user=alice, content="Three of them")
    memories.delete(user=alice, memory_id=first.id)
    memories.create(user=alice, content="Three of them")
    memories.create(user=make_user(), content="Somebody else's")


def test_a_tier_may_allow_other_numbers_than_the_site(settings):
    settings.MOST_MEMORIES, settings.MOST_MEMORY_TOKENS = 5, 100
    tier = make_tier(requests=10)
    Tier.objects.filter(pk=tier.pk).update(most_memories=1, most_memory_tokens=10)
    bob = make_user(tier=tier.pk)
    with pytest.raises(InvalidRequest, match="10 tokens are allowed"):
        memories.create(user=bob, content="日本語で書かれた")
    memories.create(user=bob, content="One of one")
    with pytest.raises(MemoriesFull, match="You have 1 memories; 1 are allowed"):
        memories.create(user=bob, content="Two")


@pytest.mark.django_db(transaction=True)
def test_twenty_at_once_never_make_one_too_many(settings):
    settings.MOST_MEMORIES = 5
    alice = make_user("alice@example.com")

    def create(number):
        with closing(connections["default"]):
            try:
                memories.create(user=alice, content=f"Fact number {number}")
            except MemoriesFull:
                return 0
            return 1

    with ThreadPoolExecutor(20) as threads:
        assert sum(threads.map(create, range(20))) == 5
    assert len(contents(alice)) == 5


@pytest.mark.django_db(transaction=True)
def test_the_same_fact_twenty_times_at_once_is_one_memory():
    alice = make_user("alice@example.com")

    def create(number):
        with closing(connections["default"]):
            return memories.create(user=alice, content="I am vegan").is_new

    with ThreadPoolExecutor(20) as threads:
        assert sum(threads.map(create, range(20))) == 1
    assert contents(alice) == ["I am vegan"]


@pytest.mark.parametrize("again", ["I live in Ghent.", "i LIVE in ghent", "I  live\nin Ghent!"])
def test_the_same_text_is_the_memory_that_is_there(alice, again):
    first = memories.create(user=alice, content="I live in Ghent.").memory
    kept = memories.create(user=alice, content=again)
    assert (kept.memory, kept.is_new) == (first, False)
    assert contents(alice) == ["I live in Ghent."]


def test_a_memory_that_was_switched_off_or_has_expired_is_in_force_when_written_again(alice):
    memory = memories.create(user=alice, content="I am vegan").memory
    past = timezone.now() - timedelta(days=1)
    Memory.objects.filter(pk=memory.pk).update(enabled=False, expires_at=past)
    assert in_force(alice) == []
    assert memories.create(user=alice, content="I am vegan").is_new
    assert in_force(alice) == contents(alice) == ["I am vegan"]


def test_a_message_that_asks_for_it_is_remembered_with_where_it_came_from(alice):
    sent = send(user=alice, conversation_id=None, message=NewMessage("Remember that I am vegan. What can I eat?"))
    memory = Memory.objects.get(user=alice)
    assert (memory.content, memory.origin) == ("I am vegan.", Memory.Origin.ASKED)
    assert (memory.conversation, memory.message) == (sent.conversation, sent.follows)
    assert sent.generation.notices == [memories.SAVED]
    assert in_force(alice) == ["I am vegan."]


def test_a_message_that_asks_for_what_is_known_or_what_does_not_fit_is_told_so(alice, settings):
    settings.MOST_MEMORIES, settings.MOST_MEMORY_TOKENS = 1, 20
    assert notices_of(alice, "Remember that I am vegan.") == [memories.SAVED]
    assert notices_of(alice, "remember: I am  VEGAN") == [memories.KNOWN]
    assert notices_of(alice, "Remember that I have a cat.") == [memories.FULL]
    assert notices_of(alice, "Remember that I have many cats and dogs.") == [memories.TOO_LONG]
    assert contents(alice) == ["I am vegan."]


def test_an_ordinary_message_writes_nothing_and_locks_nothing(alice):
    with CaptureQueriesContext(connection) as statements:
        assert notices_of(alice, "Do you remember that time in Paris?") == []
    tables = ("conversations_memory", "conversations_preference")
    asked = [each["sql"] for each in statements if any(table in each["sql"] for table in tables)]
    assert len(asked) == 1, "how long they are, for what is reserved"
    assert not any(word in asked[0] for word in ("INSERT", "UPDATE", "DELETE"))
    assert contents(alice) == []


def test_a_temporary_conversation_writes_no_memory(alice):
    assert notices_of(alice, "Remember that I am vegan.", is_temporary=True) == []
    conversation = conversations.create(user=alice, temporary=True)
    message = NewMessage("Remember that I have a cat.")
    assert send(user=alice, conversation_id=conversation.id, message=message).generation.notices == []
    assert memories.propose(user=alice, content="Has a cat", message=message_of(alice, temporary=True)) is None
    assert contents(alice) == []


def test_who_uses_no_memories_gets_none_but_by_their_own_hand(alice):
    preferences.change(user=alice, changes={"uses_memories": False})
    assert notices_of(alice, "Remember that I am vegan.") == []
    assert memories.propose(user=alice, content="Has a cat", message=message_of(alice)) is None
    assert contents(alice) == []
    memories.create(user=alice, content="I am tall")
    assert contents(alice) == ["I am tall"]


def test_a_repeated_call_remembers_nothing_again(alice):
    message = NewMessage("Remember that I am vegan.")
    first = send(user=alice, conversation_id=None, message=message, idempotency_key="once")
    Memory.objects.all().delete()
    again = send(user=alice, conversation_id=None, message=message, idempotency_key="once")
    assert (again.is_repeat, again.generation) == (True, first.generation)
    assert contents(alice) == []


def test_a_proposal_is_no_memory_until_it_is_accepted(alice, settings):
    settings.MOST_MEMORIES = 1
    memories.create(user=alice, content="I am vegan")
    proposal = memories.propose(user=alice, content="Has a cat", message=message_of(alice))
    assert in_force(alice) == ["I am vegan"], "it counts neither as a memory nor for a prompt"
    with pytest.raises(MemoriesFull):
        memories.change(user=alice, memory_id=proposal.id, changes={"confirmed": True})
    settings.MOST_MEMORIES = 2
    accepted = memories.change(user=alice, memory_id=proposal.id, changes={"confirmed": True})
    assert accepted.confirmed_at is not None
    assert sorted(in_force(alice)) == ["Has a cat", "I am vegan"]


def test_a_proposal_that_is_declined_is_gone_but_an_accepted_one_stays(alice):
    message = message_of(alice)
    declined, accepted = (memories.propose(user=alice, content=c, message=message) for c in ("Has a cat", "Has a dog"))
    memories.change(user=alice, memory_id=accepted.id, changes={"confirmed": True})
    memories.decline(user=alice, memory_id=declined.id)
    memories.decline(user=alice, memory_id=accepted.id)
    assert contents(alice) == ["Has a dog"]


def test_nothing_is_proposed_for_a_conversation_that_is_gone(alice):
    message = message_of(alice)
    Conversation.objects.filter(pk=message.conversation_id).delete()
    assert memories.propose(user=alice, content="Has a cat", message=message) is None
    assert contents(alice) == []


@pytest.mark.django_db(transaction=True)
def test_proposals_and_messages_of_one_conversation_do_not_block_each_other():
    alice = make_user("alice@example.com", tier="enterprise")
    messages = [message_of(alice) for _ in range(2)]

    def propose(number):
        with closing(connections["default"]):
            memories.propose(user=alice, content=f"Fact number {number}", message=messages[number % 2])

    def ask(number):
        with closing(connections["default"]):
            message = NewMessage(f"Remember that my number is {number} now.", parent=None)
            send(user=alice, conversation_id=messages[number % 2].conversation_id, message=message)

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(call, number) for number in range(12) for call in (propose, ask)]:
            done.result(30)
    assert len(contents(alice)) == 24


def test_what_is_known_is_not_proposed(alice):
    memories.create(user=alice, content="Has a cat")
    assert memories.propose(user=alice, content="has a CAT.", message=message_of(alice)) is None
    assert contents(alice) == ["Has a cat"]


def test_the_user_who_writes_what_is_proposed_accepts_it(alice):
    proposal = memories.propose(user=alice, content="Has a cat", message=message_of(alice))
    assert memories.create(user=alice, content="has a cat").memory == proposal
    assert in_force(alice) == ["Has a cat"]


def test_a_model_that_proposes_without_end_does_not_fill_the_table(alice, settings):
    message = message_of(alice)
    for number in range(memories.MOST_PROPOSALS + 3):
        memories.propose(user=alice, content=f"Fact number {number}", message=message)
    assert contents(alice) == [f"Fact number {number}" for number in range(3, memories.MOST_PROPOSALS + 3)]


def test_a_change_of_text_is_checked_like_a_new_one(alice, settings):
    settings.MOST_MEMORY_TOKENS = 20
    memories.create(user=alice, content="I have a cat")
    memory = memories.create(user=alice, content="I have a dog").memory
    for content in ("", "i have a CAT", "a" * 21):
        with pytest.raises(InvalidRequest):
            memories.change(user=alice, memory_id=memory.id, changes={"content": content})
    changed = memories.change(user=alice, memory_id=memory.id, changes={"content": "I have two\ndogs"})
    assert changed.content == "I have two dogs"
    assert (
        memories.change(user=alice, memory_id=memory.id, changes={"content": "I HAVE two dogs"}).content[2:6] == "HAVE"
    )


def test_a_memory_needs_review_after_its_time_until_somebody_says_that_it_holds(alice, settings):
    settings.MEMORY_REVIEW_DAYS = 180
    memory = memories.create(user=alice, content="I live in Ghent").memory
    assert not aged(memory, days=179).needs_review
    assert aged(memory, days=181).needs_review
    assert in_force(alice) == ["I live in Ghent"], "it holds until somebody says otherwise"
    assert not memories.change(user=alice, memory_id=memory.id, changes={"reviewed": True}).needs_review
    aged(memory, days=181)
    assert not memories.change(user=alice, memory_id=memory.id, changes={"content": "I live in Oslo"}).needs_review
    assert aged(memory, days=181).needs_review
    assert memories.change(user=alice, memory_id=memory.id, changes={"enabled": False}).needs_review


def test_an_expired_memory_is_not_in_force_and_later_gone(alice):
    memory = memories.create(
        user=alice, content="I am on holiday", expires_at=timezone.now() + timedelta(days=1)
    ).memory
    assert in_force(alice) == ["I am on holiday"]
    for days, count in ((1, 1), (29, 1), (31, 0)):
        Memory.objects.filter(pk=memory.pk).update(expires_at=timezone.now() - timedelta(days=days))
        assert in_force(alice) == []
        memories.delete_outlived()
        assert len(contents(alice)) == count


def test_a_proposal_waits_thirty_days_and_a_memory_for_ever(alice):
    aged(memories.create(user=alice, content="I am vegan").memory, days=4000)
    proposal = memories.propose(user=alice, content="Has a cat", message=message_of(alice))
    aged(proposal, days=29)
    assert memories.delete_outlived() == 0
    aged(proposal, days=31)
    assert memories.delete_outlived() == 1
    assert contents(alice) == ["I am vegan"]


def test_a_time_that_is_over_is_no_expiry(alice):
    with pytest.raises(InvalidRequest, match="future"):
        memories.create(user=alice, content="I am vegan", expires_at=timezone.now())


def test_a_deleted_conversation_leaves_its_memories_without_the_link(alice):
    sent = send(user=alice, conversation_id=None, message=NewMessage("Remember that I am vegan."))
    conversations.delete(user=alice, conversation_id=sent.conversation.id)
    memory = Memory.objects.get(user=alice)
    assert (memory.content, memory.conversation, memory.message) == ("I am vegan.", None, None)
    assert in_force(alice) == ["I am vegan."]


def test_a_strangers_memory_is_not_found(alice):
    memory = memories.create(user=alice, content="I am vegan").memory
    charlie = make_user()
    for call in (memories.delete, memories.decline):
        with pytest.raises(NotFound):
            call(user=charlie, memory_id=memory.id)
    with pytest.raises(NotFound):
        memories.change(user=charlie, memory_id=memory.id, changes={"enabled": False})
    assert in_force(alice) == ["I am vegan"]


def test_what_somebody_deletes_cannot_be_changed_back_into_being(alice):
    memory = memories.create(user=alice, content="I am vegan").memory
    memories.delete(user=alice, memory_id=memory.id)
    for changes in ({"content": "I am vegan"}, {"enabled": True}, {"reviewed": True}):
        with pytest.raises(NotFound):
            memories.change(user=alice, memory_id=memory.id, changes=changes)
    assert contents(alice) == []
