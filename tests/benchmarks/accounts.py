"""`python -m tests.benchmarks.accounts USERS CONVERSATIONS`: fills the database and prints what a client needs.

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


def make(users: int, conversations: int) -> list[dict[str, str]]:
    """Make users of a tier without practical limits, and conversations that are dealt to them in turn."""
    tier = Tier.objects.create(
        name="benchmark", priority_class="enterprise", requests_per_window=1_000_000, max_answer_tokens=8192
    )
    people = [User.objects.create_user(f"bench{number}@example.org", tier=tier) for number in range(users)]
    keys = [make_key(person, "benchmark", ["chat", "read", "write"])[1] for person in people]
    made = Conversation.objects.bulk_create(
        [Conversation(user=people[number % users]) for number in range(conversations)]
    )
    return [
        {"conversation_id": str(conversation.pk), "key": keys[number % users]}
        for number, conversation in enumerate(made)
    ]


if __name__ == "__main__":
    json.dump(make(int(sys.argv[1]), int(sys.argv[2])), sys.stdout)
