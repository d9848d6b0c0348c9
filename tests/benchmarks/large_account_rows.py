"""`python -m tests.benchmarks.large_account_rows CONVERSATIONS MESSAGES`: makes a large account, prints two keys.

A program of its own, because Django must know its database before the models are imported.
"""

import json
import os
import sys
from decimal import Decimal

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
django.setup()

from django.utils import timezone  # noqa: E402

from accounts.api_keys import make_key  # noqa: E402
from accounts.models import UsageRecord, User  # noqa: E402
from conversations.models import Conversation, Generation, Message  # noqa: E402
from foundation.ids import new_id  # noqa: E402

_ROWS_AT_ONCE = 2_000
_CONVERSATIONS_AT_ONCE = 200
_QUESTION = "How does a hash join differ from a merge join, and when is which of them chosen? " * 2
_ANSWER = "A hash join builds a table of the smaller side in memory and probes it with the larger one. " * 8


def make_conversations(user: User, conversations: int, messages: int) -> None:
    """Make conversations of so many messages each, with all that an answer leaves behind."""
    for begun in range(0, conversations, _CONVERSATIONS_AT_ONCE):
        numbers = range(begun, min(conversations, begun + _CONVERSATIONS_AT_ONCE))
        made = Conversation.objects.bulk_create(
            [Conversation(user=user, title=f"Joins, part {number}") for number in numbers]
        )
        said = [message for conversation in made for message in _messages(conversation, messages)]
        Message.objects.bulk_create(said, _ROWS_AT_ONCE)
        answers = [message for message in said if message.role == Message.Role.ASSISTANT]
        Generation.objects.bulk_create([_generation(user, answer) for answer in answers], _ROWS_AT_ONCE)
        UsageRecord.objects.bulk_create([_usage(user, answer) for answer in answers], _ROWS_AT_ONCE)
        for conversation, last in zip(made, said[messages - 1 :: messages], strict=True):
            conversation.active_message = last
        Conversation.objects.bulk_update(made, ["active_message"])


def _messages(conversation: Conversation, count: int) -> list[Message]:
    made: list[Message] = []
    for number in range(count):
        above = made[-1] if made else None
        role = Message.Role.USER if number % 2 == 0 else Message.Role.ASSISTANT
        content = f"{number}: {_QUESTION if role == Message.Role.USER else _ANSWER}"
        made.append(Message(conversation=conversation, parent=above, role=role, content=content, model="small"))
    return made


def _generation(user: User, answer: Message) -> Generation:
    return Generation(
        message=answer,
        user=user,
        conversation_id=answer.conversation_id,
        model="small",
        status=Message.Status.COMPLETE,
        priority_class="enterprise",
        deadline=timezone.now(),
        finished_at=timezone.now(),
    )


def _usage(user: User, answer: Message) -> UsageRecord:
    return UsageRecord(
        generation_id=answer.pk,
        user=user,
        conversation_id=answer.conversation_id,
        model="small",
        tokens_in=100,
        tokens_out=150,
        cost=Decimal("0.0001"),
    )


def main() -> None:
    conversations, messages = map(int, sys.argv[1:])
    large = User.objects.create_user(f"large-{new_id()}@example.org", tier_id="enterprise")
    other = User.objects.create_user(f"other-{new_id()}@example.org", tier_id="enterprise")
    make_conversations(large, conversations, messages)
    keys = [make_key(user, "benchmark", ["chat", "read", "write", "account"])[1] for user in (large, other)]
    json.dump(keys, sys.stdout)


if __name__ == "__main__":
    main()
