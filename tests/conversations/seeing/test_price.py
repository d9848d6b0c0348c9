"""What a conversation costs in money."""

from decimal import Decimal

import pytest
from django.conf import settings

from accounts.models import UsageRecord
from tests.accounts.factories import bearer, make_key, make_user, signed_in_as
from tests.conversations.seeing.conftest import make_exchanges

pytestmark = pytest.mark.django_db


@pytest.fixture
def paid(alice):
    """Two exchanges, whose answers cost something."""
    conversation, rows = make_exchanges(alice, 2)
    for place, cost in ((1, "0.0000012"), (3, "0.25")):
        UsageRecord.objects.create(
            generation_id=rows[place].pk, user=alice, conversation_id=conversation.pk, model="small",
            tokens_in=1200, tokens_cached=200, tokens_out=30, cost=Decimal(cost),
        )  # fmt: skip
    return conversation, rows


def test_it_is_told_exactly_and_of_each_turn(client, alice, paid):
    shown = client.get(f"/v1/conversations/{paid[0].pk}/context", headers=bearer(make_key(alice))).json()
    assert (shown["cost"], shown["currency"]) == ("0.2500012", settings.CURRENCY)
    assert [turn["cost"] for turn in shown["turns"]["data"]] == ["0.0000012", "0.25"]


def test_the_page_of_what_the_model_saw_says_it(alice, paid):
    page = signed_in_as(alice).get(f"/g/{paid[1][3].pk}/context").text
    assert "has read 2,400 tokens, of which 400 were known already, and written 60" in page
    assert f"{settings.CURRENCY} 0.25" in page


def test_a_stranger_is_told_nothing(client, paid):
    stranger = make_user()
    assert client.get(f"/v1/conversations/{paid[0].pk}/context", headers=bearer(make_key(stranger))).status_code == 404
    assert signed_in_as(stranger).get(f"/g/{paid[1][3].pk}/context").status_code == 404
