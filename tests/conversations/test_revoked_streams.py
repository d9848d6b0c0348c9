"""What is open ends within seconds of the credential that it was opened with, whether that was told or not."""

import asyncio
from datetime import timedelta
from functools import partial

import pytest
from allauth.account.models import EmailAddress
from asgiref.sync import sync_to_async
from django.contrib.auth.hashers import PBKDF2PasswordHasher, make_password
from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts import api_keys
from accounts.models import APIKey, UsageRecord, User
from conversations.models import Generation, Message
from tests.accounts.factories import PASSWORD, make_key, make_user
from tests.api_client import ApiClient
from tests.conversations.ledger.books import assert_books_balance
from tests.own_processes import wait_until

WITHIN_SECONDS = 5
LONG = '@twin {"tokens": 6000, "token_ms": 5}\nGo'


def revoke():
    api_keys.revoke_key(APIKey.objects.get())


def suspend():
    user = User.objects.get()
    user.is_active = False
    user.save()


def revoke_untold():
    APIKey.objects.update(revoked_at=timezone.now())


def expire_untold():
    APIKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


def suspend_untold():
    User.objects.update(is_active=False)


def close_untold():
    User.objects.update(is_active=False, password=make_password(None))
    APIKey.objects.update(revoked_at=timezone.now())


def demote_untold():
    User.objects.update(is_staff=False)


ENDS = [
    (revoke, "key_revoked"),
    (suspend, "account_suspended"),
    (revoke_untold, "key_revoked"),
    (expire_untold, "key_revoked"),
    (suspend_untold, "account_suspended"),
    (demote_untold, "not_authenticated"),
]


@pytest.fixture
def staff_secret(site):
    return make_key(make_user("staff@example.com", tier="enterprise", is_staff=True))


@pytest.fixture
def staff(staff_secret, http, site):
    return ApiClient(http, site.url, staff_secret)


@pytest.mark.parametrize(("end", "code"), ENDS, ids=[end.__name__ for end, _ in ENDS])
async def test_a_stream_ends_with_the_reason_and_without_done(staff, end, code):
    async with staff.sending(await staff.conversation(), LONG) as stream:
        await stream.until("token", 3)
        await sync_to_async(end)()
        async with asyncio.timeout(WITHIN_SECONDS):
            rest = await stream.rest()
    last = rest[-1]
    if end in (suspend, suspend_untold) and last.type == "done":  # its answer is stopped as well, and may end first
        assert last.data["finish_reason"] == "cancelled"
        return
    assert (last.type, last.data["code"], last.data["retryable"]) == ("error", code, False)
    assert "done" not in [event.type for event in rest]


@pytest.mark.parametrize(("end", "code"), ENDS, ids=[end.__name__ for end, _ in ENDS])
async def test_a_socket_closes(staff, staff_secret, http, site, end, code):
    async with http.ws_connect(f"{site.url}/v1/live", protocols=["bearer", staff_secret]) as socket:
        await socket.send_str("not json")
        await socket.receive(timeout=10)
        await sync_to_async(end)()
        closing = await socket.receive(timeout=WITHIN_SECONDS)
        assert (socket.close_code, closing.extra) == (4401, code)


async def test_a_followed_stream_ends_and_goes_on_under_another_key_where_it_stopped(alice, http, site):
    second = await sync_to_async(lambda: make_key(User.objects.get()))()
    other = ApiClient(http, site.url, second)
    content = '@twin {"tokens": 400, "token_ms": 10}\nGo'
    async with other.sending(await other.conversation(), content) as whole:
        start = await whole.next()
        generation_id = start.data["generation_id"]
        async with alice.following(generation_id) as stream:
            seen = await stream.until("token", 5)
            await sync_to_async(lambda: api_keys.revoke_key(APIKey.objects.earliest("pk")))()
            seen += await stream.rest()
        assert seen[-1].data["code"] == "key_revoked"
        later = await other.follow(generation_id, seen[-1].id)
        everything = await whole.rest()
    texts = [event.data["text"] for event in [*seen, *later] if event.type == "token"]
    assert "".join(texts) == "".join(event.data["text"] for event in everything if event.type == "token")
    assert later[-1].type == "done"


async def test_nothing_of_a_suspended_account_is_answered_any_more(alice, site):
    site.stop_workers()
    try:
        waiting = await alice.conversation()
        async with alice.sending(waiting, "Wait") as stream:
            generation_id = (await stream.next()).data["generation_id"]
            await sync_to_async(suspend)()
            rest = await stream.rest()
    finally:
        site.start_worker()
    assert rest[-1].data["code"] == "account_suspended" or rest[-1].data["finish_reason"] == "cancelled"
    assert (await Generation.objects.aget(pk=generation_id)).status == "cancelled"


@pytest.mark.parametrize("lock_out", [suspend_untold, close_untold])
async def test_what_was_let_in_just_before_its_account_was_locked_is_not_answered_and_costs_nothing(
    alice, site, lock_out
):
    site.stop_workers()
    try:
        async with alice.sending(await alice.conversation(), "Wait", background=True) as stream:
            generation_id = (await stream.next()).data["generation_id"]
            await sync_to_async(lock_out)()
    finally:
        site.start_worker()
    await sync_to_async(wait_until)(_has_ended(generation_id), 90, "the end")
    generation = await Generation.objects.select_related("message").aget(pk=generation_id)
    assert (generation.status, generation.message.status, generation.message.content) == ("cancelled", "cancelled", "")
    record = await UsageRecord.objects.aget(pk=generation_id)
    assert (record.tokens_in, record.tokens_out) == (0, 0)
    assert (await sync_to_async(site.twin.report)())["requests"] == [], "no model server was asked"
    await sync_to_async(assert_books_balance)()


@pytest.mark.parametrize("end", [suspend, suspend_untold])
async def test_the_answers_of_a_suspended_account_stop(alice, end):
    async with alice.sending(await alice.conversation(), LONG, background=True) as stream:
        generation_id = (await stream.until("token", 3))[0].data["generation_id"]
        await sync_to_async(end)()
        await stream.rest()
    await sync_to_async(wait_until)(_has_ended(generation_id), WITHIN_SECONDS, "the stopping")
    assert (await Generation.objects.aget(pk=generation_id)).status == "cancelled"
    await sync_to_async(assert_books_balance)()


async def test_a_caller_who_waits_for_the_whole_answer_is_refused(alice):
    conversation_id = await alice.conversation()
    call = asyncio.create_task(
        alice.call("POST", f"/v1/conversations/{conversation_id}/messages", {"content": LONG, "stream": False})
    )
    await _is_under_way(conversation_id)
    await sync_to_async(revoke)()
    async with asyncio.timeout(WITHIN_SECONDS):
        status, body = await call
    assert (status, body["error"]["code"]) == (401, "key_revoked")


async def test_another_key_of_the_same_user_goes_on(alice, alice_secret, http, site):
    second = await sync_to_async(lambda: make_key(User.objects.get()))()
    other = ApiClient(http, site.url, second)
    async with alice.sending(await alice.conversation(), LONG) as stream:
        await stream.until("token", 3)
        async with other.sending(await other.conversation(), '@twin {"tokens": 200, "token_ms": 5}\nGo') as untouched:
            await untouched.until("token", 3)
            await sync_to_async(lambda: api_keys.revoke_key(APIKey.objects.earliest("pk")))()
            await stream.rest()
            assert (await untouched.rest())[-1].data["finish_reason"] == "stop"


@pytest.mark.parametrize("end", ["logout", "session lost", "password"])
async def test_a_sign_in_that_ends_ends_its_stream(site, http, end):
    user = await sync_to_async(_signing_in_user)()
    tokens = await _app_sign_in(http, site.url, user.email)
    app = ApiClient(http, site.url, tokens["access_token"])
    async with app.sending(await app.conversation(), LONG) as stream:
        await stream.until("token", 3)
        if end == "logout":
            headers = {"X-Session-Token": tokens["session_token"]}
            async with http.delete(f"{site.url}/_allauth/app/v1/auth/session", headers=headers) as answer:
                assert answer.status == 401
        elif end == "session lost":
            await Session.objects.all().adelete()
        else:
            await sync_to_async(_change_password)(user)
        async with asyncio.timeout(WITHIN_SECONDS):
            rest = await stream.rest()
    assert rest[-1].data["code"] == "not_authenticated"


def _has_ended(generation_id):
    return partial(Generation.objects.filter(pk=generation_id).exclude(status__in=Message.UNDER_WAY).exists)


def _signing_in_user():
    user = make_user("app@example.com", tier="enterprise")
    # The running site does not know the quick hasher of the tests.
    user.password = make_password(PASSWORD, hasher=PBKDF2PasswordHasher())
    user.save()
    EmailAddress.objects.get_or_create(user=user, email=user.email, defaults={"verified": True, "primary": True})
    return user


def _change_password(user):
    user.set_password("another-" + PASSWORD)
    user.save()


async def _app_sign_in(http, url, email):
    body = {"email": email, "password": PASSWORD}
    async with http.post(f"{url}/_allauth/app/v1/auth/login", json=body) as answer:
        assert answer.status == 200, await answer.text()
        return (await answer.json())["meta"]


async def _is_under_way(conversation_id):
    written = Message.objects.filter(conversation_id=conversation_id, role="assistant")
    await sync_to_async(wait_until)(written.exists, 10, "the answer")
