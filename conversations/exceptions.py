"""What can go wrong in this app. `chatsite/errors.py` says which HTTP answer each code gets."""

from foundation.errors import DomainError


class ConversationsError(DomainError):
    """The tree's root."""


class NotFound(ConversationsError):
    code = "not_found"


class InvalidRequest(ConversationsError):
    code = "invalid_request"


class MemoriesFull(InvalidRequest):
    """As many memories as are allowed."""


class IdempotencyConflict(ConversationsError):
    code = "idempotency_conflict"


class GenerationInProgress(ConversationsError):
    code = "generation_in_progress"


class TransferInProgress(ConversationsError):
    """As many exports or imports as one may have at once."""

    code = "transfer_in_progress"


class ContentTooLong(ConversationsError):
    code = "content_too_long"


class Overloaded(ConversationsError):
    code = "overloaded"


class ReplyFailed(ConversationsError):
    """An answer that could not be written, for a reason that is not the caller's."""

    code = "internal_error"
