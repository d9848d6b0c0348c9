"""Tiers in the admin: what makes no sense is refused with a sentence, and what is used is not deleted."""

import pytest
from django.conf import settings

from accounts import invitations, quotas
from accounts.billing import subscriptions
from accounts.exceptions import ModelNotInTier
from accounts.models import AuditLog, Invitation, ModelLimit, Tier
from accounts.quotas import Wish
from foundation.ids import new_id
from inference.fleet_seeding import apply_fleet
from inference.models import ModelAlias, ModelVersion, SeededFleet
from inference.stored_catalog import forget_catalog
from tests.accounts.admin.staff import WHY, act, address_of, chief_client, logged
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db
FIELDS = {
    "name": "gold",
    "description": "For a test.",
    "priority_class": "plus",
    "requests_per_window": "40",
    "window_seconds": "3600",
    "tokens_per_minute": "20000",
    "tokens_per_day": "100000",
    "concurrent_generations": "4",
    "allowed_models": "",
    "max_answer_tokens": "1024",
    "monthly_price": "9.50",
    "included_usage": "0",
    "model_limits-TOTAL_FORMS": "0",
    "model_limits-INITIAL_FORMS": "0",
    "why": WHY,
}
AT_LEAST_ONE = (
    "requests_per_window", "window_seconds", "tokens_per_minute", "tokens_per_day", "concurrent_generations",
    "max_answer_tokens", "most_memory_tokens", "most_document_bytes",
)  # fmt: skip


@pytest.fixture
def chief():
    return chief_client()


@pytest.fixture(autouse=True)
def _two_models():
    for model in (ModelAlias, ModelVersion, SeededFleet):  # also where a running site has left its fleet behind
        model.objects.all().delete()
    apply_fleet("small=http://a:1;large=http://c:3")
    forget_catalog()


def add(chief, **fields):
    return chief.post(address_of(Tier, "add"), {**FIELDS, **fields})


def with_limit(**fields):
    limit = {"model": "large", "requests_per_window": "5", "tokens_per_day": "", **fields}
    row = {f"model_limits-0-{name}": value for name, value in limit.items()}
    return {"model_limits-TOTAL_FORMS": "1", **row}


def refused(answer):
    assert answer.status_code == 200
    assert not Tier.objects.filter(pk="gold").exists()
    assert not AuditLog.objects.exists()
    return answer.text


def test_a_tier_is_made_with_what_is_kept_for_a_model(chief):
    assert add(chief, allowed_models="small,large", **with_limit(tokens_per_day="5000")).status_code == 302
    tier = Tier.objects.get(pk="gold")
    assert (tier.priority_class, tier.allowed_models) == ("plus", ["small", "large"])
    limit = tier.model_limits.get()
    assert (limit.model, limit.requests_per_window, limit.tokens_per_day) == ("large", 5, 5000)
    changes = logged("added", tier).changes
    assert changes["requests_per_window"] == {"before": None, "after": 40}
    assert changes["model limit gold: large"]["after"]["tokens_per_day"] == 5000


@pytest.mark.parametrize("field", AT_LEAST_ONE)
@pytest.mark.parametrize("wrong", ["0", "-1"])
def test_a_limit_that_lets_nothing_through_or_is_negative_is_refused(chief, field, wrong):
    said = refused(add(chief, **{field: wrong}))
    assert "This must be 1 or more." in said or "greater than or equal to" in said


@pytest.mark.parametrize("field", ["most_memories", "most_documents"])
def test_a_tier_may_have_no_memories_and_no_documents(chief, field):
    assert add(chief, **{field: "0"}).status_code == 302
    assert getattr(Tier.objects.get(pk="gold"), field) == 0


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"allowed_models": "small,huge"}, "There is no model huge; there are large, small."),
        ({"allowed_models": "small,small"}, "Named twice: small."),
        ({"monthly_price": "-1"}, "greater than or equal to 0"),
        ({"monthly_price": "1.005"}, "no more than 2 decimal places"),
        ({"monthly_price": "NaN"}, "Enter a number."),
        ({"included_usage": "-1", "bills_overage": "on"}, "greater than or equal to 0"),
        ({"included_usage": "5"}, "Usage is included only where what goes beyond it is billed."),
        ({"priority_class": "royal"}, "royal is not one of the available choices"),
        ({"tokens_per_day": "1024"}, "One answer could use up more than the day&#x27;s tokens."),
        ({"tokens_per_minute": "1000"}, "One answer could use up more than the minute&#x27;s tokens."),
        ({"name": "go ld"}, "Enter a valid “slug”"),
        ({"name": "free"}, "Tier with this Name already exists."),
        ({"name": ""}, "This field is required."),
        ({"requests_per_window": ""}, "This field is required."),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(chief, fields, sentence):
    assert sentence in refused(add(chief, **fields))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"model": "huge"}, "There is no model huge; there are large, small."),
        ({"requests_per_window": "0"}, "This must be 1 or more."),
        ({"requests_per_window": "-1"}, "greater than or equal to 0"),
        ({"tokens_per_day": "0"}, "This must be 1 or more."),
        ({"tokens_per_day": "-1"}, "greater than or equal to 0"),
    ],
)
def test_what_is_kept_for_a_model_is_checked_as_well(chief, fields, sentence):
    assert sentence in refused(add(chief, **with_limit(**fields)))


def test_a_model_has_one_limit_in_a_tier(chief):
    twice = {**with_limit(), "model_limits-TOTAL_FORMS": "2"}
    twice |= {"model_limits-1-model": "large", "model_limits-1-requests_per_window": "9"}
    assert "duplicate" in refused(add(chief, **twice))


def test_without_a_reason_no_tier_is_made(chief):
    for why in ("", "short"):
        assert "errorlist" in refused(add(chief, why=why))


def test_a_change_counts_from_the_next_request_on_and_its_values_are_logged(chief):
    add(chief)
    user = make_user(tier="gold")
    quotas.reserve(user, Wish(new_id(), "large", 100))
    changed = {**FIELDS, "allowed_models": "small", "requests_per_window": "41"}
    assert chief.post(address_of(Tier.objects.get(pk="gold"), "change"), changed).status_code == 302
    user = type(user).objects.select_related("tier").get(pk=user.pk)
    with pytest.raises(ModelNotInTier):
        quotas.reserve(user, Wish(new_id(), "large", 100))
    assert logged("changed").changes == {
        "allowed_models": {"before": [], "after": ["small"]},
        "requests_per_window": {"before": 40, "after": 41},
    }


def test_a_tier_keeps_its_name(chief):
    add(chief)
    chief.post(address_of(Tier.objects.get(pk="gold"), "change"), {**FIELDS, "name": "silver", "description": "New."})
    assert Tier.objects.get(pk="gold").description == "New."
    assert not Tier.objects.filter(pk="silver").exists()


def delete(chief, tier):
    """Try both ways to delete it."""
    answer = chief.post(address_of(tier, "delete"), {"post": "yes", "why": WHY})
    act(chief, "delete_selected", tier, post="yes")
    return answer


def test_the_tier_of_new_accounts_is_not_deleted(chief):
    delete(chief, Tier.objects.get(pk=settings.DEFAULT_TIER))
    assert Tier.objects.filter(pk=settings.DEFAULT_TIER).exists()
    assert not AuditLog.objects.exists()


def put_an_account_on(tier):
    make_user(tier=tier.pk)
    return "On gold there are accounts: 1."


def have_had_a_plan_on(tier):
    plan = subscriptions.subscribe(make_user(), tier)
    subscriptions.end(plan)
    return "On gold there are plans: 1."


def invite_to(tier):
    invitations.invite("new@example.com", tier=tier)
    return "On gold there are invitations: 1."


@pytest.mark.parametrize("use", [put_an_account_on, have_had_a_plan_on, invite_to])
def test_a_tier_that_is_used_is_not_deleted_and_the_page_says_by_what(chief, use):
    add(chief)
    tier = Tier.objects.get(pk="gold")
    sentence = use(tier)
    assert sentence in chief.get(address_of(tier, "delete")).text
    assert sentence in delete(chief, tier).text
    assert Tier.objects.filter(pk="gold").exists()
    assert not AuditLog.objects.filter(action="deleted").exists()


def test_an_unused_tier_is_deleted_with_what_was_kept_for_models_and_each_is_logged(chief):
    add(chief, **with_limit())
    tier = Tier.objects.get(pk="gold")
    limit = tier.model_limits.get()
    invitation, _link = invitations.invite("spent@example.com", tier=tier)
    invitations.accept(invitation)
    assert chief.post(address_of(tier, "delete"), {"post": "yes", "why": WHY}).status_code == 302
    assert not Tier.objects.filter(pk="gold").exists()
    assert not ModelLimit.objects.exists()
    assert not Invitation.objects.exists()
    assert logged("deleted", tier).changes["monthly_price"] == {"before": "9.50", "after": None}
    assert logged("deleted", limit).changes["model"] == {"before": "large", "after": None}
    assert "digest" not in logged("deleted", invitation).changes


def test_no_tier_is_deleted_without_a_reason(chief):
    add(chief)
    tier = Tier.objects.get(pk="gold")
    assert "errorlist" in chief.post(address_of(tier, "delete"), {"post": "yes", "why": ""}).text
    assert "errorlist" in act(chief, "delete_selected", tier, post="yes", why="").text
    assert Tier.objects.filter(pk="gold").exists()
