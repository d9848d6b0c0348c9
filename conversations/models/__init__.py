"""Conversations, their messages, the making of answers."""

from conversations.models.conversation import Conversation
from conversations.models.errand import Errand
from conversations.models.generation import Generation, IdempotencyKey
from conversations.models.memory import Memory
from conversations.models.message import Message
from conversations.models.preference import Preference
from conversations.models.summary import Summary

__all__ = ["Conversation", "Errand", "Generation", "IdempotencyKey", "Memory", "Message", "Preference", "Summary"]
