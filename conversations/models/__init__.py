"""Conversations, their messages, the making of answers."""

from conversations.models.conversation import Conversation
from conversations.models.errand import Errand
from conversations.models.generation import Generation, IdempotencyKey
from conversations.models.memory import Memory
from conversations.models.message import Message
from conversations.models.preference import Preference
from conversations.models.summary import Summary
from conversations.models.transfer import Export, Import, ImportedConversation, TransferStatus

__all__ = [
    "Conversation",
    "Errand",
    "Export",
    "Generation",
    "IdempotencyKey",
    "Import",
    "ImportedConversation",
    "Memory",
    "Message",
    "Preference",
    "Summary",
    "TransferStatus",
]
