"""What happens to the stores behind the product's back."""

from datetime import timedelta

from django.db import connection, transaction
from django.utils import timezone

from accounts.models import TokenBudget, TokenReservation, UsageRecord
from conversations.models import Generation

SITE = "the site"
"""What its processes are called in PostgreSQL."""


def cut_the_sites_connections() -> None:
    """End every connection of the site's processes, as a restart of PostgreSQL does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", [SITE])


def let_deadlines_pass() -> None:
    """Let what waits have waited too long."""
    long_ago = timezone.now() - timedelta(minutes=1)
    Generation.objects.filter(status="queued", attempt=0).update(deadline=long_ago)


@transaction.atomic
def let_a_midnight_pass() -> None:
    """Let today be yesterday, also for what is under way."""
    ledger = (TokenReservation, UsageRecord, TokenBudget)
    with connection.cursor() as cursor:
        for model in ledger:
            cursor.execute(f"LOCK TABLE {model._meta.db_table} IN EXCLUSIVE MODE")
    for model in ledger:
        for row in model.objects.order_by("day"):
            model.objects.filter(pk=row.pk).update(day=row.day - timedelta(days=1))


def let_reservations_grow_old() -> None:
    """Let what is reserved have been so for an hour."""
    TokenReservation.objects.update(created_at=timezone.now() - timedelta(hours=1))
