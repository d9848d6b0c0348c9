"""The ledger's roll-ups by user, UTC day and model, made anew from its records as often as one likes."""

from datetime import UTC, date, datetime, timedelta

from django.db import connection, transaction

from accounts.models import RolledUpDay

_ONE_AT_A_TIME = 0x726F6C6C
"""The advisory lock of roll-ups: one that began earlier would write what it read earlier over a later one's."""

_FINAL_DAYS = """
SELECT each::date FROM generate_series(%(first)s::date, %(last)s::date, '1 day') AS each
WHERE each < ((now() - interval '1 hour') AT TIME ZONE 'UTC')::date
  AND NOT EXISTS (SELECT FROM accounts_tokenreservation WHERE day = each::date)
"""
"""Days of which no more records can come: each comes of a reservation of its day, or else is of the day it is made on.

The hour is for transactions that began before midnight, and for clocks.
"""

_ROLL_UP = """
WITH sums AS (
  SELECT user_id, day, model, count(*) AS answers, sum(tokens_in) AS tokens_in, sum(tokens_cached) AS tokens_cached,
         sum(tokens_out) AS tokens_out, sum(cost) AS cost
  FROM accounts_usagerecord
  WHERE created_at >= %(first)s::date - 1 AND day BETWEEN %(first)s AND %(last)s AND tokens_in + tokens_out > 0
  GROUP BY user_id, day, model
), emptied AS (
  DELETE FROM accounts_dailyusage old WHERE day BETWEEN %(first)s AND %(last)s
  AND NOT EXISTS (SELECT FROM sums WHERE (sums.user_id, sums.day, sums.model) = (old.user_id, old.day, old.model))
)
INSERT INTO accounts_dailyusage AS old
  (user_id, day, model, answers, tokens_in, tokens_cached, tokens_out, cost)
SELECT user_id, day, model, answers, tokens_in, tokens_cached, tokens_out, cost FROM sums
ON CONFLICT (user_id, day, model) DO UPDATE SET
  answers = excluded.answers, tokens_in = excluded.tokens_in, tokens_cached = excluded.tokens_cached,
  tokens_out = excluded.tokens_out, cost = excluded.cost
WHERE (old.answers, old.tokens_in, old.tokens_cached, old.tokens_out, old.cost) IS DISTINCT FROM
  (excluded.answers, excluded.tokens_in, excluded.tokens_cached, excluded.tokens_out, excluded.cost)
"""
"""A record is never made before its day, so that the index of their times finds it; rows that stay are not written."""


@transaction.atomic
def roll_up(first: date, last: date) -> None:
    """Make the roll-ups of these days, both included, what the records say now."""
    days = {"first": first, "last": last}
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ONE_AT_A_TIME])
        # Before the records are read: what is final then has all of them already.
        cursor.execute(_FINAL_DAYS, days)
        final = [RolledUpDay(day=day) for (day,) in cursor.fetchall()]
        cursor.execute(_ROLL_UP, days)
    RolledUpDay.objects.bulk_create(final, ignore_conflicts=True)


def roll_up_recent(*, days: int) -> None:
    """Roll up today and the days before it, `days` of them together."""
    today = datetime.now(UTC).date()
    roll_up(today - timedelta(days=days - 1), today)


def days_to_read(first: date, last: date) -> tuple[list[date], list[date]]:
    """Return which of these days are to be read from their roll-ups, and which from the records."""
    every = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    final = set(RolledUpDay.objects.filter(day__range=(first, last)).values_list("day", flat=True))
    return [day for day in every if day in final], [day for day in every if day not in final]
