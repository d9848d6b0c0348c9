"""What the answer to a message that is let in does without, and within which limits it is written."""

import orjson
import pytest

from conversations.exceptions import Overloaded
from conversations.models import Message
from conversations.services import admission, messages
from conversations.services.admission import NOTICES, admit, deadline_seconds
from conversations.services.messages import NewMessage
from foundation.ids import new_id
from foundation.redis import shared_client
from inference import lua, overload, queue
from inference.fleet_seeding import apply_fleet
from inference.jobs import PRIORITY_CLASSES
from inference.models import ModelAlias, ModelVersion
from inference.stored_catalog import forget_catalog
from tests.accounts.factories import make_user
from tests.inference.core.conftest import own_valkey
from tests.inference.core.jobs import make_job

__all__ = ["own_valkey"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return make_user("alice@example.com", tier="plus")


@pytest.fixture(autouse=True)
def fleet(settings):
    settings.MAX_ANSWER_TOKENS = 8192
    apply_fleet("large=http://127.0.0.1:1;small=http://127.0.0.1:2")
    ModelAlias.objects.filter(name="large").update(fallback=ModelAlias.objects.get(name="small"))
    forget_catalog()
    yield
    forget_catalog()


def there_are(**permits):
    """Have a worker report so many permits of each model; an answer takes two seconds."""
    lua.run(shared_client(), "report_capacity", "worker", 1000, orjson.dumps(permits))
    for model in permits:
        shared_client().hset(f"{lua.base_key()}:service", model, 2000)


def waiting(count, model="large"):
    """Let so many messages wait ahead of everybody else's."""
    queue.enqueue(shared_client(), [make_job("enterprise", model=model) for _ in range(count)])


def test_while_there_is_room_the_answer_is_as_long_as_the_tier_allows(alice):
    there_are(large=10)
    let_in = admit(alice, new_id(), "large", {"seed": 7})
    assert (let_in.model, let_in.options, let_in.notices) == ("large", {"seed": 7, "max_tokens": 4096}, ())


def test_no_answer_is_longer_than_its_model_allows(alice):
    ModelVersion.objects.filter(name="large").update(max_answer_tokens=800)
    forget_catalog()
    assert admit(alice, new_id(), "large", {}).options["max_tokens"] == 800
    assert admit(alice, new_id(), "large", {"max_tokens": 300}).options["max_tokens"] == 300


def test_under_load_the_answer_is_shortened_and_tools_are_left_out(alice):
    there_are(large=10)
    waiting(19)
    let_in = admit(alice, new_id(), "large", {"tools": ["search"]})
    assert let_in.options == {"max_tokens": 512, "tools": []}
    assert let_in.notices == ("output_shortened", "tools_disabled")


def test_what_was_not_asked_for_is_not_done_without(alice):
    there_are(large=10)
    waiting(19)
    let_in = admit(alice, new_id(), "large", {"max_tokens": 100})
    assert (let_in.options, let_in.notices) == ({"max_tokens": 100}, ())


def test_the_smaller_model_that_answers_is_named(alice):
    there_are(large=10, small=10)
    waiting(22)
    let_in = admit(alice, new_id(), "large", {})
    assert (let_in.model, let_in.notices) == ("small", ("output_shortened", "fallback_model"))


def test_a_smaller_model_that_the_tier_lacks_does_not_answer(alice):
    alice.tier.allowed_models = ["large"]
    there_are(large=10, small=10)
    waiting(22)
    let_in = admit(alice, new_id(), "large", {})
    assert (let_in.model, let_in.notices) == ("large", ("output_shortened",))


def test_another_answer_is_asked_of_the_model_that_was_wanted_not_of_the_one_that_stood_in(alice):
    there_are(large=10, small=10)
    waiting(22)
    answered = messages.send(user=alice, conversation_id=None, message=NewMessage("Hello", model="large"))
    assert answered.generation.notices == ["output_shortened", "fallback_model"]
    Message.objects.filter(pk=answered.answer.pk).update(status=Message.Status.COMPLETE)
    there_are(large=100, small=10)
    again = messages.regenerate(user=alice, message_id=answered.answer.pk)
    assert (answered.generation.model, again.generation.model) == ("small", "large")


def test_who_is_refused_is_told_when_to_come_again(alice):
    there_are(large=1)
    waiting(5)
    with pytest.raises(Overloaded) as refused:
        admit(alice, new_id(), "large", {})
    assert 10 <= refused.value.retry_after_seconds <= 15
    assert refused.value.retry_after_seconds == int(refused.value.retry_after_seconds)


def test_nobody_is_sent_away_for_long(alice):
    there_are(large=1)
    waiting(500)
    with pytest.raises(Overloaded) as refused:
        admit(alice, new_id(), "large", {})
    assert refused.value.retry_after_seconds == 60


def test_a_message_of_which_nothing_came_gives_its_place_back(alice):
    there_are(large=1)
    admission.leave(admit(alice, new_id(), "large", {}))
    assert not list(shared_client().scan_iter(match="*:door:*"))


def test_while_redis_is_away_everybody_is_let_in(alice, own_valkey):
    own_valkey.stop()
    let_in = admit(alice, new_id(), "large", {})
    assert (let_in.model, let_in.notices) == ("large", ())
    admission.leave(let_in)


def test_background_work_may_wait_longest():
    deadlines = [deadline_seconds(each) for each in PRIORITY_CLASSES]
    assert deadlines == sorted(deadlines)
    assert deadlines[-1] > deadlines[0]


def test_every_step_has_words():
    assert NOTICES.keys() >= overload.STEPS.keys()
