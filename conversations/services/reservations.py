"""How many tokens an answer may use at most, known before its message is let in."""

import re
import sys
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from accounts.models import User
from conversations.context.prompt import MEMORIES_HEADING
from conversations.models import Message
from conversations.models_on_offer import Reach, reach_of
from conversations.services.memory_limits import most_memories
from inference.template_tokens import SUPPOSED
from inference.token_counting import upper_bound

MOST_TOKENS = 2**31 - 1
_MOST_STEPS = 64
"""How far above a message a counted prompt is looked for where the window bounds the whole anyway."""
_LINE_TOKENS = 8
"""What a memory has around it as an item of a list."""
_MESSAGES_BESIDE = 3
"""The system message, the new one, and the one that is to be written."""

# A prompt that was counted, and in which nothing was left out, is a part of every later prompt of its branch: there the
# walk ends. BOUND is what `upper_bound` says of a text.
_STEP = """
  message.id, message.parent_id,
  COALESCE((message.token_counts ->> (generation.context ->> 'tokenizer'))::int, BOUND(message.content)) AS tokens,
  CASE WHEN message.tokens_in > 0 AND generation.model_version = ANY(%(versions)s::text[])
         AND generation.context ->> 'tail_from' IS NULL AND generation.context ->> 'passages_dropped' = '0'
       THEN GREATEST(message.tokens_in, (generation.context ->> 'total_tokens')::int) END AS prompt_tokens
"""
_PARTS = """
WITH RECURSIVE above AS (
  SELECT 1 AS steps, STEP
  FROM conversations_message message LEFT JOIN conversations_generation generation ON generation.message_id = message.id
  WHERE message.id = %(last)s AND message.conversation_id = %(conversation_id)s
  UNION ALL
  SELECT above.steps + 1, STEP
  FROM above JOIN conversations_message message ON message.id = above.parent_id AND message.id < above.id
  LEFT JOIN conversations_generation generation ON generation.message_id = message.id
  WHERE above.prompt_tokens IS NULL AND above.steps < %(most_steps)s
), remembered AS (
  SELECT BOUND(content) AS tokens FROM conversations_memory
  WHERE user_id = %(user_id)s AND enabled AND confirmed_at IS NOT NULL AND (expires_at IS NULL OR expires_at > now())
    AND NOT %(is_temporary)s
  ORDER BY id DESC LIMIT %(most_memories)s
)
SELECT (SELECT count(*) FROM above), (SELECT COALESCE(sum(tokens), 0) + COALESCE(max(prompt_tokens), 0) FROM above),
  (SELECT COALESCE(bool_or(parent_id IS NULL OR prompt_tokens IS NOT NULL), true) FROM above),
  COALESCE((SELECT BOUND(instructions) FROM conversations_preference WHERE user_id = %(user_id)s), 0),
  (SELECT COALESCE(sum(tokens + %(line)s), 0) FROM remembered)
"""
_PARTS = re.sub(
    r"BOUND\(([a-z.]+)\)", r"GREATEST(octet_length(\1), octet_length(normalize(\1)))", _PARTS.replace("STEP", _STEP)
)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What of a prompt is stored, in tokens at most. `is_whole` says whether all of the path is in `path_tokens`."""

    messages: int
    path_tokens: int
    is_whole: bool
    user_instructions_tokens: int
    memories_tokens: int


def most_tokens(user: User, follows: Message, model: str, *, max_answer_tokens: int) -> int:
    """Return an upper bound of what is read and written for an answer of at most `max_answer_tokens` to `follows`.

    The whole window is one. Where that of the nearest answer above was counted by the model that will read it, the
    prompt is bound by that count and what is new; else by the bytes of all its parts.
    """
    reach = reach_of(model)
    parts = _parts(user, follows, reach)
    bounds = [MOST_TOKENS]
    if reach.window_tokens is not None:
        bounds.append(reach.window_tokens)
    if parts.is_whole:
        bounds.append(_prompt_tokens(follows, parts) + max_answer_tokens)
    return min(bounds)


def _prompt_tokens(follows: Message, parts: _Parts) -> int:
    new = upper_bound(follows.content) if follows._state.adding else 0
    instructions = sum(map(upper_bound, (settings.SYSTEM_INSTRUCTIONS, follows.conversation.instructions)))
    memories = parts.memories_tokens + len(MEMORIES_HEADING) if parts.memories_tokens else 0
    around = SUPPOSED.base + SUPPOSED.per_message * (parts.messages + _MESSAGES_BESIDE)
    return parts.path_tokens + new + instructions + parts.user_instructions_tokens + memories + around


def _parts(user: User, follows: Message, reach: Reach) -> _Parts:
    conversation = follows.conversation
    parameters: dict[str, Any] = {
        "last": follows.parent_id if follows._state.adding else follows.pk,
        "conversation_id": conversation.pk,
        "versions": sorted(reach.versions) if len(reach.versions) == 1 else [],
        "most_steps": _MOST_STEPS if reach.window_tokens is not None else sys.maxsize,
        "user_id": user.pk,
        "is_temporary": conversation.temporary,
        "most_memories": most_memories(user),
        "line": _LINE_TOKENS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_PARTS, parameters)
        return _Parts(*cursor.fetchone())
