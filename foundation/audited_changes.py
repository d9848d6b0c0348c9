"""The values of a form's or a row's fields before and after a change, as the audit log keeps them."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import BinaryField, Model

SECRETS = frozenset(
    {"password", "password1", "password2", "usable_password", "digest", "session_key", "secret", "token",
     "token_secret", "key", "data", "extra_data"}
)  # fmt: skip
MOST_CHARACTERS = 2_000
"""How much of a long text is kept of each of its states."""

type Changes = dict[str, Any]


class ChangeMessage(list[Any]):
    """The message that Django's own history gets, and with it the values that the audit log gets."""

    def __init__(self, message: Iterable[Any], changes: Changes) -> None:
        super().__init__(message)
        self.changes = changes


def changes_of(form: forms.BaseForm, formsets: Iterable[Any], *, is_new: bool) -> Changes:
    """Return what a valid form and its inline rows changed; of secrets, that they changed and nothing more."""
    changes = _form_changes(form, is_new=is_new)
    for formset in formsets:
        name = str(formset.model._meta.verbose_name)
        for row in formset.new_objects:
            changes[f"{name} {row}"] = {"before": None, "after": row_values(row)}
        for row, _fields in formset.changed_objects:
            changed = next(each for each in formset.initial_forms if each.instance is row or each.instance == row)
            changes[f"{name} {row}"] = _form_changes(changed, is_new=False)
        for row in formset.deleted_objects:
            changes[f"{name} {row}"] = {"before": row_values(row), "after": None}
    return changes


def row_values(row: Model) -> Changes:
    """Return a row's own fields, without secrets."""
    fields = (each for each in row._meta.concrete_fields if not isinstance(each, BinaryField))
    return {each.name: plain(each.value_from_object(row)) for each in fields if each.name not in SECRETS}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
    """Return the fields whose values differ between two states of a row (`row_values`)."""
    return {
        name: {"before": before.get(name), "after": value} for name, value in after.items() if before.get(name) != value
    }


def plain(value: Any) -> Any:  # noqa: PLR0911 — a line for each kind
    """Return a field's value as JSON can hold it."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return value[:MOST_CHARACTERS]
        case datetime() | date():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case Model():
            return str(value.pk)
        case Mapping():
            return {str(name): plain(each) for name, each in value.items()}
        case bytes() | memoryview():
            return "not shown"
        case _ if hasattr(value, "__iter__"):
            return [str(each) if isinstance(each, Model) else plain(each) for each in value]
    return str(value)


def _form_changes(form: forms.BaseForm, *, is_new: bool) -> Changes:
    given = {name for name, value in form.cleaned_data.items() if value not in (None, "", [])}
    names = given if is_new else set(form.changed_data)
    return {
        name: _change(form, name, is_new=is_new) for name in form.fields if name in names and name != "why"
    }  # fmt: skip


def _change(form: forms.BaseForm, name: str, *, is_new: bool) -> Any:
    if name in SECRETS:
        return "not shown"
    before = None if is_new else plain(form.get_initial_for_field(form.fields[name], name))
    return {"before": before, "after": plain(form.cleaned_data.get(name))}
