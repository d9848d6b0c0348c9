"""Conversations in the admin: how answers came about, without a word of what was said."""

from conversations.admin.generations import GenerationAdmin

__all__ = ["GenerationAdmin"]
