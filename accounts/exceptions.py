"""What can go wrong in this app. `chatsite/errors.py` says which HTTP answer each code gets."""

from foundation.errors import DomainError


class AccountsError(DomainError):
    """The tree's root."""


class NotAuthenticated(AccountsError):
    code = "not_authenticated"


class TokenExpired(AccountsError):
    code = "token_expired"


class KeyRevoked(AccountsError):
    code = "key_revoked"


class ScopeMissing(AccountsError):
    code = "scope_missing"


class Forbidden(AccountsError):
    code = "forbidden"


class CSRFFailed(AccountsError):
    code = "csrf_failed"


class AccountSuspended(AccountsError):
    code = "account_suspended"


class NotFound(AccountsError):
    code = "not_found"


class InvalidRequest(AccountsError):
    code = "invalid_request"


class ModelNotInTier(AccountsError):
    code = "model_not_in_tier"


class RequestsExceeded(AccountsError):
    code = "requests_exceeded"


class PaymentProviderUnavailable(AccountsError):
    code = "payment_provider_unavailable"


class InvalidWebhook(AccountsError):
    code = "invalid_webhook"


class TokensExceeded(AccountsError):
    code = "tokens_exceeded"


class ConcurrencyExceeded(AccountsError):
    code = "concurrency_exceeded"


class ModelQuotaExceeded(AccountsError):
    code = "model_quota_exceeded"
