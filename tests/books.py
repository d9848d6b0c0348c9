"""Whether the ledger is equal to the generations, to the token; asked of any connection to a site's database."""

from collections.abc import Callable
from typing import Any

AFTER_A_DELETION = "what has ended keeps nothing"
"""False for a moment where a conversation is deleted while it is answered: until the worker says what was used."""
CHECKS = {
    "what a day keeps is what is reserved": """
        SELECT user_id, day, pool, budget.reserved, kept.tokens FROM accounts_tokenbudget budget FULL JOIN (
          SELECT user_id, day, pool, sum(tokens) AS tokens FROM accounts_tokenreservation GROUP BY user_id, day, pool
        ) kept USING (user_id, day, pool)
        WHERE COALESCE(budget.reserved, 0) <> COALESCE(kept.tokens, 0)""",
    "what a day has used is what its records say": """
        SELECT user_id, day, spent.tokens, recorded.tokens FROM (
          SELECT user_id, day, sum(used) AS tokens FROM accounts_tokenbudget GROUP BY user_id, day
        ) spent FULL JOIN (
          SELECT user_id, day, sum(tokens_in + tokens_out) AS tokens FROM accounts_usagerecord GROUP BY user_id, day
        ) recorded USING (user_id, day)
        WHERE COALESCE(spent.tokens, 0) <> COALESCE(recorded.tokens, 0)""",
    "what has ended is recorded as its message says": """
        SELECT message.id, message.status, message.tokens_in, message.tokens_out, record.tokens_in, record.tokens_out
        FROM conversations_generation generation
        JOIN conversations_message message ON message.id = generation.message_id
        LEFT JOIN accounts_usagerecord record ON record.generation_id = message.id
        WHERE generation.status NOT IN ('queued', 'running') AND (record.generation_id IS NULL OR
          (record.tokens_in, record.tokens_cached, record.tokens_out)
            IS DISTINCT FROM (message.tokens_in, message.tokens_cached, message.tokens_out))""",
    "what is under way is reserved, and recorded nowhere": """
        SELECT message_id FROM conversations_generation generation
        LEFT JOIN accounts_tokenreservation reservation ON reservation.generation_id = generation.message_id
        LEFT JOIN accounts_usagerecord record ON record.generation_id = generation.message_id
        WHERE generation.status IN ('queued', 'running')
          AND (reservation.generation_id IS NULL OR record.generation_id IS NOT NULL)""",
    AFTER_A_DELETION: """
        SELECT generation_id FROM accounts_tokenreservation reservation WHERE NOT EXISTS (
          SELECT FROM conversations_generation
          WHERE message_id = reservation.generation_id AND status IN ('queued', 'running'))""",
    "what failed costs nothing": """
        SELECT generation_id FROM conversations_generation generation
        JOIN accounts_usagerecord record ON record.generation_id = generation.message_id
        WHERE generation.status = 'failed' AND record.tokens_in + record.tokens_out > 0""",
}


def mistakes_in_the_books(query: Callable[[str], list[Any]]) -> dict[str, list[Any]]:
    """Return the rows that contradict each statement, where there are any; `query` returns a statement's rows."""
    found = {statement: query(sql) for statement, sql in CHECKS.items()}
    return {statement: rows for statement, rows in found.items() if rows}
