"""What the list of accounts shows beside each: what it used today, what it has under way, whether it is suspended."""

from datetime import UTC, datetime

from django.db.models import Count, Exists, IntegerField, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from accounts import sanctions
from accounts.models import TokenBudget, TokenReservation, User


def with_columns(users: QuerySet[User]) -> QuerySet[User]:
    """Add `used_today` (tokens), `open_generations` and `is_suspended`, in the statement of the list itself."""
    today = datetime.now(UTC).date()
    budgets = TokenBudget.objects.filter(user=OuterRef("pk"), day=today).order_by().values("user")
    under_way = TokenReservation.objects.filter(user=OuterRef("pk")).order_by().values("user")
    return users.annotate(
        used_today=Coalesce(Subquery(budgets.annotate(sum=Sum("used")).values("sum"), IntegerField()), 0),
        open_generations=Coalesce(Subquery(under_way.annotate(count=Count("pk")).values("count"), IntegerField()), 0),
        is_suspended=Exists(sanctions.in_force().filter(user=OuterRef("pk"))),
    )
