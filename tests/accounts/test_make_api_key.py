"""`manage.py make_api_key`."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.callers import caller_from_bearer
from accounts.models import APIKey, User
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db


def make(capsys, *arguments):
    call_command("make_api_key", *arguments)
    return capsys.readouterr()


def test_it_prints_the_key_and_nothing_else(capsys):
    printed = make(capsys, "bot@example.com", "--tier", "plus", "--scopes", "chat,read", "--name", "ci")
    caller = caller_from_bearer(printed.out.removesuffix("\n"))
    assert (caller.user.email, caller.user.tier_id) == ("bot@example.com", "plus")
    assert caller.scopes == {"chat", "read"}
    assert printed.err == ""


def test_the_account_it_makes_has_no_password(capsys):
    make(capsys, "Bot@Example.com", "--scopes", "chat")
    user = User.objects.get(email="bot@example.com")
    assert not user.has_usable_password()
    assert user.tier_id == "free"


def test_an_account_that_exists_is_used_and_moved_to_the_tier(capsys):
    user = make_user("ann@example.com")
    make(capsys, "ANN@example.com", "--scopes", "chat", "--tier", "enterprise")
    user.refresh_from_db()
    assert (user.tier_id, user.api_keys.count(), User.objects.count()) == ("enterprise", 1, 1)


def test_an_account_keeps_its_tier_when_none_is_named(capsys):
    user = make_user("ann@example.com", tier="plus")
    make(capsys, "ann@example.com", "--scopes", "chat")
    user.refresh_from_db()
    assert user.tier_id == "plus"


def test_the_key_ends_after_the_days_that_were_asked_for(capsys):
    make(capsys, "bot@example.com", "--scopes", "chat", "--expires-days", "7")
    remaining = APIKey.objects.get().expires_at - timezone.now()
    assert timedelta(days=6, hours=23) < remaining <= timedelta(days=7)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["bot@example.com", "--scopes", "chat", "--tier", "gold"], "There is no tier `gold`; there are enterprise, "),
        (["bot@example.com", "--scopes", "chat,root"], "There is no scope `root`; there are chat, "),
        (["bot@example.com", "--scopes", " , "], "Name at least one scope"),
        (["bot@example.com"], "--scopes"),
        (["not an address", "--scopes", "chat"], "`not an address` is not an email address"),
        (["bot@example.com", "--scopes", "chat", "--expires-days", "0"], "--expires-days must be"),
        (["bot@example.com", "--scopes", "chat", "--expires-days", "-3"], "--expires-days must be"),
        (["bot@example.com", "--scopes", "chat", "--expires-days", "99999999"], "--expires-days must be"),
        (["bot@example.com", "--scopes", "chat", "--expires-days", "soon"], "--expires-days"),
        (["bot@example.com", "--scopes", "chat", "--name", "n" * 101], "name"),
    ],
)
def test_a_mistake_is_told_in_a_sentence_and_makes_nothing(capsys, arguments, sentence):
    with pytest.raises(CommandError, match=r".") as mistake:
        call_command("make_api_key", *arguments)
    assert sentence in str(mistake.value)
    assert capsys.readouterr().out == ""
    assert not User.objects.exists()


def test_a_suspended_account_gets_no_key(capsys):
    make_user("sam@example.com", is_active=False)
    with pytest.raises(CommandError, match="suspended"):
        call_command("make_api_key", "sam@example.com", "--scopes", "chat")
