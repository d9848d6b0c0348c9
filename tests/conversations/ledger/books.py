"""The books of the tests' own database."""

from django.db import connection
from django.db.models import Sum

from accounts.models import TokenBudget
from tests.books import AFTER_A_DELETION, mistakes_in_the_books


def assert_books_balance():
    assert mistakes_in_the_books(_rows) == {}


def assert_books_balance_but_for_the_deleted():
    """For when the worker of a deleted conversation may have yet to say what was used."""
    mistakes = mistakes_in_the_books(_rows)
    mistakes.pop(AFTER_A_DELETION, None)
    assert mistakes == {}


def used_and_reserved(user):
    """Return a user's tokens of all days and pools."""
    sums = TokenBudget.objects.filter(user=user).aggregate(used=Sum("used"), reserved=Sum("reserved"))
    return sums["used"] or 0, sums["reserved"] or 0


def _rows(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()
