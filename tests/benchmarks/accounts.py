"""`python -m tests.benchmarks.accounts CLASS:USERS:CONVERSATIONS …`: fills the database, prints what clients need.

A program of its own, because Django must know its database before the models are imported.
"""

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
django.setup()

from accounts.api_keys import make_key  # noqa: E402
from accounts.models import Tier, User  # noqa: E402
from conversations.models import Conversation  # noqa: E402


def make(group: int, priority_class: str, users: int, conversations: int) -> list[dict[str, str]]:
    """Make users of a tier without practical limits, and conversations that are dealt to them in turn."""
    tier, _ = Tier.objects.get_or_create(
        name=f"benchmark-{priority_class}",
        defaults={
            "priority_class": priority_class,
            "requests_per_window": 1_000_000,
            "max_answer_tokens": 8192,
            "uses_answer_cache": True,
        },
    )
    people = [User.objects.create_user(f"bench{group}-{number}@example.org", tier=tier) for number in range(users)]
    keys = [make_key(person, "benchmark", ["chat", "read", "write"])[1] for person in people]
    made = Conversation.objects.bulk_create(
        [Conversation(user=people[number % users]) for number in range(conversations)]
    )
    return [
        {"conversation_id": str(conversation.pk), "key": keys[number % users]}
        for number, conversation in enumerate(made)
    ]


def main() -> None:
    groups = [wish.split(":") for wish in sys.argv[1:]]
    made = [
        make(number, priority_class, int(users), int(conversations))
        for number, (priority_class, users, conversations) in enumerate(groups)
    ]
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main()
