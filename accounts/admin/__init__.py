"""Accounts, tiers, keys, money in the admin. No secret is shown, and nothing is changed without a reason on record."""

from accounts.admin.billing import CreditNoteAdmin, InvoiceAdmin, StripeEventAdmin, SubscriptionAdmin
from accounts.admin.groups import GroupAdmin
from accounts.admin.invitations import InvitationAdmin
from accounts.admin.keys import APIKeyAdmin
from accounts.admin.records import AuditLogAdmin, ErasureAdmin, SanctionAdmin, UsageRecordAdmin
from accounts.admin.sign_ins import AddressAdmin, SecondFactorAdmin, SessionAdmin, SocialAccountAdmin
from accounts.admin.tiers import TierAdmin
from accounts.admin.users import UserAdmin

__all__ = [
    "APIKeyAdmin",
    "AddressAdmin",
    "AuditLogAdmin",
    "CreditNoteAdmin",
    "ErasureAdmin",
    "GroupAdmin",
    "InvitationAdmin",
    "InvoiceAdmin",
    "SanctionAdmin",
    "SecondFactorAdmin",
    "SessionAdmin",
    "SocialAccountAdmin",
    "StripeEventAdmin",
    "SubscriptionAdmin",
    "TierAdmin",
    "UsageRecordAdmin",
    "UserAdmin",
]
