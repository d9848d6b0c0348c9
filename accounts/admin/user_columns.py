"""What the admin tells beside each account: what it used today, what it has under way, how it stands."""

from datetime import UTC, datetime
from typing import Any

from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.db.models import BigIntegerField, Count, Exists, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts import sanctions
from accounts.admin.user_panels import good_sessions
from accounts.models import Sanction, TokenBudget, TokenReservation, User
from accounts.models.usage import SHARED_POOL


def with_columns(users: QuerySet[User]) -> QuerySet[User]:
    """Add what is told of each account, in the statement of the list itself.

    `used_today` counts the tokens that the tier's daily limit is for, `used_apart` those of models with limits of their
    own.
    """
    mine = {"user": OuterRef("pk")}
    budgets = TokenBudget.objects.filter(**mine, day=datetime.now(UTC).date())
    return users.annotate(
        used_today=_one(budgets.filter(pool=SHARED_POOL), Sum("used")),
        used_apart=_one(budgets.exclude(pool=SHARED_POOL), Sum("used")),
        open_generations=_one(TokenReservation.objects.filter(**mine), Count("pk")),
        open_sessions=_one(good_sessions(UserSession.objects.filter(**mine)), Count("pk")),
        sanction_count=_one(Sanction.objects.filter(**mine), Count("pk")),
        is_suspended=Exists(sanctions.in_force().filter(**mine)),
    )


class UserColumns:
    """The columns of the list, which the account's own page has as well. They tell of users `with_columns`."""

    @admin.display(description="Tokens today", ordering="used_today")
    def tokens_today(self, user: Any) -> str:
        limit = user.tier.tokens_per_day
        told = f"{user.used_today:,}" if limit is None else f"{user.used_today:,} of {limit:,}"
        return f"{told}, and {user.used_apart:,} apart" if user.used_apart else told

    @admin.display(description="Under way", ordering="open_generations")
    def answers_under_way(self, user: Any) -> int:
        return int(user.open_generations)

    @admin.display(description="Sessions", ordering="open_sessions")
    def sessions(self, user: Any) -> int:
        return int(user.open_sessions)

    @admin.display(description="Standing", ordering="is_active")
    def standing(self, user: Any) -> str:
        state = "suspended" if user.is_suspended else "active" if user.is_active else "not active"
        match user.sanction_count:
            case 0:
                return state
            case 1:
                return f"{state}, 1 sanction on record"
        return f"{state}, {user.sanction_count} sanctions on record"

    @admin.display(description="What staff have done")
    def acts(self, user: User) -> SafeString:
        address = reverse("admin:accounts_auditlog_changelist", query={"q": str(user.pk)})
        return format_html('<a href="{}">The audit log about this account</a>', address)


def _one(rows: QuerySet[Any], of_them: Sum | Count) -> Coalesce:
    """Return a number about the rows of the account that is read."""
    grouped = rows.order_by().values("user").annotate(number=of_them).values("number")
    return Coalesce(Subquery(grouped, BigIntegerField()), 0)
