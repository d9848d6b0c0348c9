"""Writes to several tables in one statement, and so in one round trip: the parts of a `WITH`.

Django's foreign keys are checked at the commit, so that the parts may refer to each other. None sees what others write.
"""

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import AutoField, Model
from django.db.models.sql import InsertQuery, UpdateQuery

type Part = tuple[str, tuple[Any, ...]]


def insertion(rows: Sequence[Model]) -> Part:
    """Return what inserts new rows of one table."""
    model = type(rows[0])
    fields = [field for field in model._meta.local_concrete_fields if not isinstance(field, AutoField)]
    query = InsertQuery(model)
    query.insert_values(fields, list(rows))
    ((statement, parameters),) = query.get_compiler(connection=connection).as_sql()
    return statement, tuple(parameters)


def change(row: Model, fields: Sequence[str]) -> Part:
    """Return what stores some fields of a row."""
    model = type(row)
    query = model._base_manager.filter(pk=row.pk).query.chain(UpdateQuery)
    assert isinstance(query, UpdateQuery)
    query.add_update_values({name: getattr(row, name) for name in fields})
    statement, parameters = query.get_compiler(connection=connection).as_sql()
    return statement, tuple(parameters)


def write_together(*parts: Part) -> None:
    """Run all parts as one statement."""
    *first, (last, _) = parts
    named = ", ".join(f"part_{number} AS ({statement})" for number, (statement, _) in enumerate(first))
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {named} {last}", [value for _, parameters in parts for value in parameters])
