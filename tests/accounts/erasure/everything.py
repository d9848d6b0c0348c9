"""A row in every table that can hold something of an account, found by walking the models: a new one is filled, too."""

import uuid
from datetime import timedelta
from itertools import count

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from django.utils import timezone

from accounts.models import AuditLog, Tier, User
from tests.accounts.factories import make_user

_number = count(1)


def _said_by_the_site(user):
    """Return fields whose text is the site's own, and what is to be under way of nothing."""
    number = next(_number)
    return {
        "accounts.AuditLog": {
            "action": "change",
            "subject_type": "accounts.tier",
            "subject_id": f"tier-{number}",
            "reason": "Was asked to.",
            "changes": {},
        },
        "accounts.BillingMail": {"kind": "invoice_issued", "sent_at": timezone.now()},
        "accounts.CreditNote": {"number": f"credit-{number}"},
        "accounts.Invitation": {"email": user.email},
        "accounts.Invoice": {"number": f"invoice-{number}", "issuer": "The site", "currency": "EUR"},
        "accounts.InvoiceLine": {"description": "The plan"},
        "accounts.PlanSpan": {"provider": "stripe"},
        "conversations.Errand": {"status": "settled"},
        "conversations.Export": {"status": "done"},
        "conversations.Generation": {"status": "complete"},
        "conversations.Import": {"status": "done"},
        "conversations.Message": {"status": "complete"},
    }


def models_of_accounts():
    """Return every model that refers to an account, directly or through others, each after those that it refers to."""
    found = {User}
    while more := {model for model in _all_models() if model not in found and found & set(_targets(model))}:
        found |= more
    ordered = [User]
    while left := [model for model in found if model not in ordered]:
        ready = [model for model in left if all(t in ordered or t not in found for t in _targets(model, needed=True))]
        assert ready, f"these refer to each other: {left}"
        ordered += sorted(ready, key=lambda model: model._meta.label)
    return ordered


def fill(word, **fields):
    """Make an account with a row in every such table, and the word in every text. Return the account and its rows."""
    user = make_user(f"{word}@example.com", tier="plus", name=f"{word} name", **fields)
    user.groups.add(Group.objects.get_or_create(name="people")[0])
    user.user_permissions.add(Permission.objects.first())
    made = {User: user}
    for model in models_of_accounts():
        if model is not User and not model._meta.auto_created:
            made[model] = _make(model, word, made)
    for model, row in made.items():
        _close_circles(model, row, made)
    _let_staff_act_on(user, word)
    return user, made


def rows_with(word):
    """Return, by table, the rows of the whole database that hold a word in any column, as text or as bytes."""
    found = {}
    hexed = word.encode().hex()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            row = f'SELECT row::text FROM "{table}" row WHERE row::text ILIKE %s OR row::text ILIKE %s ORDER BY 1'
            cursor.execute(row, [f"%{word}%", f"%{hexed}%"])
            if rows := [text for (text,) in cursor.fetchall()]:
                found[table] = rows
    return found


def _all_models():
    return [model for model in apps.get_models(include_auto_created=True) if not model._meta.proxy]


def _targets(model, *, needed=False):
    return [
        field.related_model
        for field in model._meta.concrete_fields
        if field.is_relation and field.related_model is not model and not (needed and field.null)
    ]


def _make(model, word, made):
    values = {}
    for field in model._meta.concrete_fields:
        value = _value(field, word, made)
        if value is not None:
            values[field.name] = value
    values |= _said_by_the_site(made[User]).get(model._meta.label, {})
    return model._default_manager.create(**values)


def _value(field, word, made):
    if field.is_relation:
        return _related(field, made)
    if getattr(field, "choices", None):
        return field.choices[0][0]
    match field:
        case models.AutoField():
            return None
        case models.EmailField():
            return f"{word}{next(_number)}@example.com"
        case models.CharField() | models.TextField():
            return f"{word}{next(_number)}"[: field.max_length or 1000]
        case models.UUIDField():
            return uuid.uuid4()
        case models.JSONField():
            return {"said": word}
        case models.BinaryField():
            return f"{word}{next(_number)}".encode().ljust(32, b".")[:32]
        case ArrayField():
            return [word[:16]]
        case models.DateTimeField():
            return None if field.null else timezone.now() - timedelta(seconds=next(_number))
        case models.DateField():
            return timezone.now().date()
        case models.GenericIPAddressField():
            return "192.0.2.7"
        case models.BooleanField():
            return field.get_default() or False
        case models.FloatField() | models.IntegerField() | models.DecimalField():
            return 1
    raise AssertionError(f"say here how {field} is filled")


def _related(field, made):
    target = field.related_model
    if target in made:
        return made[target]
    if target is Tier:
        return Tier.objects.get(name="plus")
    if field.null:
        return None
    if target is ContentType:
        return ContentType.objects.get_for_model(User)
    raise AssertionError(f"say here what {field} refers to")


def _close_circles(model, row, made):
    """Let rows also refer to those that were made after them."""
    later = {
        field.name: made[field.related_model]
        for field in model._meta.concrete_fields
        if field.is_relation and field.null and field.related_model in made and field.related_model is not model
        if getattr(row, field.attname) is None
    }
    if later:
        model._default_manager.filter(pk=row.pk).update(**later)


def _let_staff_act_on(user, word):
    staff = User.objects.filter(is_staff=True).first() or make_user("staff@example.org", is_staff=True)
    AuditLog.objects.create(
        actor=staff,
        action="suspend",
        subject_type="accounts.user",
        subject_id=str(user.pk),
        reason=f"{word} was rude.",
        changes={"email": [f"{word}@example.com", ""]},
    )
    LogEntry.objects.create(
        user=staff,
        content_type=ContentType.objects.get_for_model(User),
        object_id=str(user.pk),
        object_repr=user.email,
        action_flag=2,
        change_message=f"Changed {word}.",
    )
