"""Staff at the admin, and what they do there, each in one line."""

import re
from itertools import count

from django.contrib.auth.models import Group, Permission
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from accounts.models import AuditLog
from tests.accounts.factories import make_user

WHY = "They asked for it, ticket 4711."
_number = count(1)


def staff_client(*rights: str, group: str | None = None, **powers) -> Client:
    """Return the browser of a member of staff; `client.staff` is the account."""
    client = Client()
    client.staff = make_user(f"staff{next(_number)}@example.com", is_staff=True, **powers)
    if group is not None:
        client.staff.groups.add(Group.objects.get(name=group))
    client.staff.user_permissions.set(Permission.objects.filter(codename__in=rights))
    client.force_login(client.staff)
    return client


def chief_client() -> Client:
    """Return the browser of somebody who may do everything."""
    return staff_client(is_superuser=True)


def address_of(row: type[Model] | Model, page: str = "changelist") -> str:
    """Return the address of a model's list or form of addition, or of a page about a row."""
    arguments = [row.pk] if isinstance(row, Model) else []
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{page}", args=arguments)


def act(client: Client, action: str, *rows: Model, **asked):
    """Run an action on rows of one model, confirmed and with a reason."""
    sent = {"action": action, "_selected_action": [row.pk for row in rows], "confirmed": "yes", "why": WHY, **asked}
    return client.post(address_of(type(rows[0])), sent, follow=True)


def change(client: Client, row: Model, **fields):
    """Send a row's form, with the fields that count the lines of its tables as the page has them."""
    counts = dict(re.findall(r'name="([\w-]+_FORMS)" value="(\d+)"', client.get(address_of(row, "change")).text))
    return client.post(address_of(row, "change"), {**counts, "why": WHY, **fields})


def logged(action: str, row: Model | None = None) -> AuditLog:
    """Return the one row of the audit log about an action."""
    found = AuditLog.objects.filter(action=action)
    return found.get() if row is None else found.get(subject_type=row._meta.model_name, subject_id=str(row.pk))
