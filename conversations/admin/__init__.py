"""Conversations in the admin: how answers came about, without a word of what was said."""

from conversations.admin.generations import GenerationAdmin
from conversations.admin.transfers import ExportAdmin, ImportAdmin

__all__ = ["ExportAdmin", "GenerationAdmin", "ImportAdmin"]
