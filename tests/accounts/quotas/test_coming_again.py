"""Whoever comes again when they were told to is let in: no time that is told is too early by a fraction of a second."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F
from django.test import RequestFactory

from accounts.exceptions import AccountsError, TokensExceeded
from accounts.models import ModelLimit, UsageRecord
from accounts.quotas.rules import forget_own_limits
from chatsite.errors import answer_to
from chatsite.page_errors import PageErrors
from tests.accounts.quotas.conftest import forget_everything, make_user_with, reserve, use

pytestmark = pytest.mark.django_db


def refusal_of(user, tokens=10, **wish):
    with pytest.raises(AccountsError) as refused:
        reserve(user, tokens, **wish)
    return refused.value


def wait(seconds):
    """Make all that was used that much older."""
    UsageRecord.objects.update(created_at=F("created_at") - timedelta(seconds=seconds))
    forget_everything()


def assert_let_in_after_what_was_told(user, refusal, **wish):
    told = int(answer_to(refusal).headers["Retry-After"])
    assert told - 1 < refusal.retry_after_seconds <= told
    page = PageErrors(lambda request: None).process_exception(RequestFactory().get("/"), refusal)
    assert page["Retry-After"] == str(told)
    wait(told)
    reserve(user, **wish)


def test_a_message_that_is_sent_again_after_retry_after_is_let_in():
    user = make_user_with(requests=1, window_seconds=100)
    use(user, ago=timedelta(seconds=88.6))
    assert_let_in_after_what_was_told(user, refusal_of(user))


def test_so_is_one_that_the_minute_had_no_tokens_for():
    user = make_user_with(tokens_per_minute=100)
    use(user, ago=timedelta(seconds=48.6), tokens=95)
    assert_let_in_after_what_was_told(user, refusal_of(user, 10), tokens=10)


def test_so_is_one_to_a_model_with_limits_of_its_own():
    user = make_user_with()
    ModelLimit.objects.create(tier=user.tier, model="dear", requests_per_window=1)
    forget_own_limits()
    use(user, ago=timedelta(seconds=3588.6), model="dear")
    assert_let_in_after_what_was_told(user, refusal_of(user, model="dear"), model="dear")


def test_the_day_is_over_when_it_is_told_to_be():
    refusal = refusal_of(make_user_with(tokens_per_day=5))
    now = datetime.now(UTC)
    assert isinstance(refusal, TokensExceeded)
    told = timedelta(seconds=int(answer_to(refusal).headers["Retry-After"]))
    assert now.date() < (now + told + timedelta(seconds=1)).date()


@pytest.mark.parametrize("ago", [40.0, 40.4, 40.9])
def test_the_time_that_is_written_is_no_earlier_than_the_one_that_is_waited_for(ago):
    user = make_user_with(requests=1, window_seconds=100)
    use(user, ago=timedelta(seconds=ago))
    before = datetime.now(UTC)
    refusal = refusal_of(user)
    written = datetime.fromisoformat(refusal.details["resets_at"])
    assert written >= before + timedelta(seconds=refusal.retry_after_seconds)
    assert refusal.details["resets_at"] in refusal.message
