"""What can go wrong in this app. `chatsite/errors.py` says which HTTP answer each code gets."""

from foundation.errors import DomainError


class InferenceError(DomainError):
    """The tree's root."""


class UnknownModel(InferenceError):
    code = "not_found"


class NoCapacity(InferenceError):
    code = "no_capacity"


class InvalidFleet(InferenceError):
    """`MODEL_FLEET` cannot be read; the message names the faulty part."""

    code = "internal_error"
