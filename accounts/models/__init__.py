"""Users, tiers, keys, usage."""

from accounts.models.api_key import APIKey
from accounts.models.tier import Tier
from accounts.models.usage import UsageRecord
from accounts.models.user import User

__all__ = ["APIKey", "Tier", "UsageRecord", "User"]
