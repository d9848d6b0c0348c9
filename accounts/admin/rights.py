"""Which accounts a member of staff may act on: those of other staff are for superusers."""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from accounts.exceptions import Forbidden
from accounts.models import User


def may_act_on(actor: User | AnonymousUser, user: User) -> bool:
    """Say whether `actor` may change this account, its addresses, its keys and its sign-ins."""
    return bool(actor.is_superuser) or not (user.is_staff or user.is_superuser)


def chosen_users(actor: Any, users: QuerySet[User]) -> list[User]:
    """Return the accounts that an action was asked for; refuse all of them where one is of the staff's."""
    chosen = list(users.order_by("email"))
    if refused := [user.email for user in chosen if not may_act_on(actor, user)]:
        raise Forbidden(f"Only superusers act on the accounts of staff: {', '.join(refused)}.")
    return chosen
