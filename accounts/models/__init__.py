"""Users, tiers, keys, usage, money."""

from accounts.models.api_key import APIKey
from accounts.models.audit import AuditLog
from accounts.models.erasure import Erasure
from accounts.models.invitation import Invitation
from accounts.models.invoice import BillingMail, ClosedPeriod, CreditNote, Invoice, InvoiceLine, NumberSeries
from accounts.models.rolled_up_day import RolledUpDay
from accounts.models.sanction import Sanction
from accounts.models.subscription import PlanSpan, StripeCustomer, StripeEvent, Subscription
from accounts.models.tier import ModelLimit, Tier
from accounts.models.usage import (
    SHARED_POOL,
    DailyUsage,
    RequestReservation,
    TokenBudget,
    TokenReservation,
    UsageRecord,
)
from accounts.models.user import User

__all__ = [
    "SHARED_POOL",
    "APIKey",
    "AuditLog",
    "BillingMail",
    "ClosedPeriod",
    "CreditNote",
    "DailyUsage",
    "Erasure",
    "Invitation",
    "Invoice",
    "InvoiceLine",
    "ModelLimit",
    "NumberSeries",
    "PlanSpan",
    "RequestReservation",
    "RolledUpDay",
    "Sanction",
    "StripeCustomer",
    "StripeEvent",
    "Subscription",
    "Tier",
    "TokenBudget",
    "TokenReservation",
    "UsageRecord",
    "User",
]
