"""Who may have another answer written now: the tier's limits, reserved before anything is queued."""

from accounts.quotas.allowances import Allowance, Limit, RequestAllowance, TokenAllowance, rate_limit_headers
from accounts.quotas.counts import Wish
from accounts.quotas.orphans import release_orphans
from accounts.quotas.reserving import limits_of, peek, release, reserve, settled, settled_async

__all__ = [
    "Allowance",
    "Limit",
    "RequestAllowance",
    "TokenAllowance",
    "Wish",
    "limits_of",
    "peek",
    "rate_limit_headers",
    "release",
    "release_orphans",
    "reserve",
    "settled",
    "settled_async",
]
