"""Finds transfers that nobody works on, and deletes what is over."""

from dataclasses import dataclass
from uuid import UUID

from conversations.models import Export, Import
from conversations.services.exports import writing
from conversations.services.imports import reading
from conversations.services.transfers import files, lease


@dataclass(frozen=True, slots=True)
class Forsaken:
    """What is to be tried again."""

    exports: list[UUID]
    imports: list[UUID]


def give_up_or_find_forsaken() -> Forsaken:
    """Give up what has been tried often enough, and return what else nobody works on."""
    exports, hopeless_exports = lease.forsaken(Export)
    imports, hopeless_imports = lease.forsaken(Import)
    for export_id in hopeless_exports:
        writing.fail(export_id)
    for import_id in hopeless_imports:
        reading.fail(import_id)
    return Forsaken(exports, imports)


def delete_what_is_over() -> int:
    """Delete expired exports, and files that no row knows; return how many."""
    count = writing.delete_expired()
    for folder, model in ((files.EXPORTS, Export), (files.IMPORTS, Import)):
        known = frozenset(model._default_manager.exclude(file="").values_list("file", flat=True))
        count += files.delete_strays(folder, known)
    return count
