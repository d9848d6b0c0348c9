"""What a tier keeps for one model, and which models it offers."""

import pytest

from accounts import quotas
from accounts.exceptions import ModelNotInTier, ModelQuotaExceeded, RequestsExceeded, TokensExceeded
from accounts.models import ModelLimit, TokenBudget
from accounts.quotas.rules import forget_own_limits
from foundation.ids import new_id
from tests.accounts.factories import make_user, signed_in_as
from tests.accounts.quotas.conftest import admitted_of, forget_everything, make_user_with, reserve, settle, use

pytestmark = pytest.mark.django_db


@pytest.fixture
def make_user_with_dear_model():
    def make(*, dear_requests=1000, dear_tokens=None, **limits):
        user = make_user_with(**limits)
        ModelLimit.objects.create(
            tier=user.tier, model="dear", requests_per_window=dear_requests, tokens_per_day=dear_tokens
        )
        return user

    return make


def test_cheap_traffic_cannot_use_up_what_is_kept_for_the_dear_model(make_user_with_dear_model):
    user = make_user_with_dear_model(requests=1, dear_requests=1)
    reserve(user)
    with pytest.raises(RequestsExceeded):
        reserve(user)
    assert reserve(user, model="dear").requests_remaining == 0


def test_the_dear_model_uses_up_nothing_of_the_others(make_user_with_dear_model):
    user = make_user_with_dear_model(requests=1, dear_requests=1, tokens_per_day=100, dear_tokens=100)
    reserve(user, 100, model="dear")
    with pytest.raises(ModelQuotaExceeded) as refused:
        reserve(user, model="dear")
    assert (refused.value.details["name"], refused.value.details["model"]) == ("requests", "dear")
    assert reserve(user, 100).tokens_remaining == 0


def test_its_tokens_of_a_day_are_its_own(make_user_with_dear_model):
    user, generation_id = make_user_with_dear_model(tokens_per_day=100, dear_tokens=50), new_id()
    reserve(user, 100)
    reserve(user, 50, model="dear", generation_id=generation_id)
    with pytest.raises(ModelQuotaExceeded) as refused:
        reserve(user, 1, model="dear")
    assert (refused.value.details["name"], refused.value.details["limit"]) == ("tokens_per_day", 50)
    settle(user, generation_id, 10, 10, model="dear")
    assert quotas.peek(user, "dear").tokens_remaining == 30
    assert quotas.peek(user).tokens_remaining == 0
    budgets = TokenBudget.objects.order_by("pool").values_list("pool", "used", "reserved")
    assert list(budgets) == [("", 0, 100), ("dear", 20, 0)]


def test_the_minute_is_over_all_models(make_user_with_dear_model):
    user = make_user_with_dear_model(tokens_per_minute=100)
    reserve(user, 60)
    with pytest.raises(TokensExceeded):
        reserve(user, 60, model="dear")


def test_an_emptied_redis_is_filled_pool_by_pool(make_user_with_dear_model):
    user = make_user_with_dear_model(requests=3, dear_requests=2)
    use(user, model="small")
    use(user, model="small")
    use(user, model="dear")
    forget_everything()
    assert reserve(user).requests_remaining == 0
    assert reserve(user, model="dear").requests_remaining == 0


@pytest.mark.django_db(transaction=True)
def test_of_500_at_once_exactly_as_many_pass_as_the_model_has_room_for(make_user_with_dear_model):
    assert admitted_of(500, make_user_with_dear_model(dear_requests=7), model="dear") == 7


@pytest.mark.django_db(transaction=True)
def test_the_models_limit_holds_exactly_while_redis_is_away(make_user_with_dear_model, redis_is_away):
    user = make_user_with_dear_model(requests=1, dear_requests=7)
    use(user, model="small")
    use(user, model="dear")
    assert admitted_of(60, user, threads=6, model="dear") == 6


def test_a_limit_taken_away_leaves_what_was_reserved_where_it_was(make_user_with_dear_model):
    user, generation_id = make_user_with_dear_model(), new_id()
    reserve(user, 10, model="dear", generation_id=generation_id)
    ModelLimit.objects.all().delete()
    forget_own_limits()
    settle(user, generation_id, 3, 4, model="dear")
    assert list(TokenBudget.objects.values_list("pool", "used", "reserved")) == [("dear", 7, 0)]


def test_a_model_that_the_tier_does_not_offer_is_refused():
    user = make_user_with(allowed_models=["small"])
    reserve(user, model="small")
    with pytest.raises(ModelNotInTier) as refused:
        reserve(user, model="dear")
    assert refused.value.param == "model"
    assert quotas.peek(user).requests.used == 1


def test_a_model_whose_day_is_left_open_has_no_daily_limit_whatever_the_tier_has():
    user = make_user_with(tokens_per_day=100)
    ModelLimit.objects.create(tier=user.tier, model="dear", requests_per_window=5)
    forget_own_limits()
    assert reserve(user, 10**6, model="dear").tokens is None
    assert reserve(user, 100).tokens_remaining == 0


def test_the_admin_says_what_an_open_limit_means():
    staff = signed_in_as(make_user(is_staff=True, is_superuser=True))
    page = staff.get("/admin/accounts/tier/free/change/").text
    assert "no limit for this model" in page
    assert "within five seconds" in page
