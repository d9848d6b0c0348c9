"""What a worker has in hand is saved, kept alive, and let go of when it is no longer the worker's."""

from datetime import timedelta

import pytest
from django.utils import timezone

from conversations.models import Generation
from conversations.services import claims, requeueing
from conversations.services.live_replies import LiveReplies, LiveReply
from conversations.streaming import presence
from foundation.database import in_database
from inference.cancellation import Cancellation, Why
from tests.inference.core.factories import expire_lease, make_attempt, make_generation, read_generation
from tests.inference.core.jobs import take_all

pytestmark = pytest.mark.django_db(transaction=True)


async def in_hand(live, publisher, text="", **fields):
    """Begin a reply as a worker does."""
    attempt = await in_database(make_attempt, **fields)
    writer = publisher.writer(attempt.generation_id, attempt.number)
    writer.write_text(text)
    reply = LiveReply(attempt, writer, Cancellation())
    live.add(reply)
    return reply


async def stored(reply):
    return await in_database(read_generation, reply.attempt.generation_id)


@pytest.fixture
def live(client):
    return LiveReplies(client)


async def test_a_checkpoint_saves_what_has_grown(live, publisher):
    one, other = await in_hand(live, publisher, "one"), await in_hand(live, publisher, "other")
    await live.checkpoint()
    assert [(await stored(reply)).message.content for reply in (one, other)] == ["one", "other"]
    one.writer.write_text(" more")
    assert (one.unsaved().text, other.unsaved().text) == ("one more", None)
    await live.checkpoint()
    assert [(await stored(reply)).message.content for reply in (one, other)] == ["one more", "other"]


async def test_a_checkpoint_renews_the_lease_of_a_reply_that_is_silent(live, publisher):
    reply = await in_hand(live, publisher)
    await in_database(expire_lease, reply.attempt.generation_id)
    await live.checkpoint()
    assert await in_database(requeueing.lost_jobs) == []
    assert reply.cancellation.why is None


async def test_whoever_goes_on_with_a_reply_knows_when_its_first_token_came(live, publisher):
    dead, leaving = await in_hand(live, publisher), await in_hand(live, publisher)
    dead.first_token_at = leaving.first_token_at = first = timezone.now()
    await live.checkpoint()
    await in_database(expire_lease, dead.attempt.generation_id)
    await in_database(requeueing.lost_jobs)
    await in_database(requeueing.hand_over, leaving.attempt, "", first_token_at=leaving.first_token_at)
    for reply in (dead, leaving):
        attempt = await in_database(claims.claim, reply.attempt.generation_id)
        assert LiveReply(attempt, reply.writer, Cancellation()).first_token_at == first


async def test_a_checkpoint_without_replies_does_nothing(live):
    await live.checkpoint()


async def test_a_cancel_that_was_not_heard_is_read_from_the_row(live, publisher):
    reply, other = await in_hand(live, publisher, "x"), await in_hand(live, publisher, "y")
    now = timezone.now()
    await in_database(lambda: Generation.objects.filter(pk=reply.attempt.generation_id).update(cancel_requested_at=now))
    await live.checkpoint()
    assert (reply.cancellation.why, other.cancellation.why) == (Why.CANCELLED, None)


async def test_a_reply_that_was_given_to_another_worker_is_let_go(live, publisher):
    reply = await in_hand(live, publisher, "x")
    await in_database(requeueing.hand_over, reply.attempt, "")
    await in_database(claims.claim, reply.attempt.generation_id)
    await live.checkpoint()
    assert reply.cancellation.why is Why.FENCED


async def test_a_later_attempt_of_the_same_worker_is_not_removed_with_an_earlier_one(live, publisher):
    zombie = await in_hand(live, publisher, "zombie")
    await in_database(requeueing.hand_over, zombie.attempt, "")
    attempt = await in_database(claims.claim, zombie.attempt.generation_id)
    writer = publisher.writer(attempt.generation_id, attempt.number)
    writer.write_text("heir")
    heir = LiveReply(attempt, writer, Cancellation())
    live.add(heir)
    live.remove(zombie)
    await live.checkpoint()
    assert (await stored(heir)).message.content == "heir"
    assert heir.cancellation.why is None


async def test_sweeping_enqueues_what_no_worker_holds(live, client):
    lost = await in_database(make_attempt)
    await in_database(expire_lease, lost.generation_id)
    forgotten = await in_database(make_generation, enqueued_at=timezone.now() - timedelta(minutes=1))
    await live.sweep()
    taken = {job.generation_id for job in await take_all(client)}
    assert taken == {lost.generation_id, forgotten.pk}


async def test_a_reply_that_nobody_ever_watched_is_stopped_after_the_grace_time(live, publisher, settings):
    settings.GRACE_SECONDS = 0
    reply = await in_hand(live, publisher)
    await live.stop_unwatched()
    assert reply.cancellation.why is Why.CANCELLED


async def test_a_reply_is_not_stopped_before_the_grace_time(live, publisher, settings):
    settings.GRACE_SECONDS = 600
    reply = await in_hand(live, publisher)
    await live.stop_unwatched()
    assert reply.cancellation.why is None


async def test_a_reply_that_was_watched_or_is_in_the_background_goes_on(live, publisher, settings, client):
    settings.GRACE_SECONDS = 0
    watched, background = await in_hand(live, publisher), await in_hand(live, publisher, is_background=True)
    await presence.watch(client, presence.new_watcher(), [watched.attempt.generation_id])
    await live.stop_unwatched()
    assert (watched.cancellation.why, background.cancellation.why) == (None, None)


async def test_no_reply_is_stopped_while_redis_cannot_say_who_watches(own_valkey, client, publisher, settings):
    settings.GRACE_SECONDS = 0
    live = LiveReplies(client)
    reply = await in_hand(live, publisher)
    own_valkey.stop()
    await live.stop_unwatched()
    own_valkey.start()
    assert reply.cancellation.why is None
