"""Tells the accounts, which know no models, what the catalogue's models are called."""

from accounts import known_models
from inference.stored_catalog import current_catalog


def model_names() -> frozenset[str]:
    """Return the names of all models that the catalogue has."""
    return frozenset(model.alias for model in current_catalog().models)


known_models.tell_with(model_names)
