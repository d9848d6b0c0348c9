"""Conversations, their messages, the making of answers."""

from conversations.models.conversation import Conversation
from conversations.models.generation import Generation, IdempotencyKey
from conversations.models.message import Message

__all__ = ["Conversation", "Generation", "IdempotencyKey", "Message"]
