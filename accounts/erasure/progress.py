"""How far an erasure has come: what `Erasure.stores` holds."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from accounts.erasure.stores import Erased, Store, all_stores
from accounts.models import Erasure


def note(erasure: Erasure, name: str, erased: Erased) -> int:
    """Add to a store's count, in the transaction that erased it; return how many were erased this time.

    A store in which nothing was found is done.
    """
    entry = _entry(erasure.stores, name)
    parts = dict(erased) if isinstance(erased, Mapping) else {}
    count = sum(erased.values()) if isinstance(erased, Mapping) else erased
    entry["erased"] += count
    for part, number in parts.items():
        entry["parts"][part] = entry["parts"].get(part, 0) + number
    if not count:
        entry["done_at"] = entry["done_at"] or timezone.now().isoformat()
    erasure.save(update_fields=["stores"])
    return count


def ready_stores(erasure: Erasure) -> list[Store]:
    """Return the stores that are not done and wait for no other."""
    done = done_names(erasure)
    waiting = [store for store in all_stores() if store.name not in done]
    names = {store.name for store in waiting}
    return [store for store in waiting if names.isdisjoint(store.after)]


def done_names(erasure: Erasure) -> set[str]:
    """Return the names of the stores that held nothing any more when they were last looked at."""
    return {entry["name"] for entry in erasure.stores if entry["done_at"]}


def _entry(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for entry in entries:
        if entry["name"] == name:
            return entry
    entries.append({"name": name, "erased": 0, "parts": {}, "done_at": None})
    return entries[-1]
