"""Users, tiers, keys, usage."""

from accounts.models.api_key import APIKey
from accounts.models.audit import AuditLog
from accounts.models.tier import Tier
from accounts.models.usage import RequestReservation, UsageRecord
from accounts.models.user import User

__all__ = ["APIKey", "AuditLog", "RequestReservation", "Tier", "UsageRecord", "User"]
