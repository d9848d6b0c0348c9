"""Counts the tokens that TGI lists, without parsing them.

A long prompt's list has megabytes, and to parse it takes tenths of a second in which no answer of the process goes on.
"""

import re

from inference.tgi.errors import Misbehaved

# In JSON, a quote within a text is escaped: there this cannot be met.
_TOKEN = b'"id":'
# A special token that the tokenizer adds stands for none of the text's bytes.
_ADDED = rb'\{\s*"id":\s*\d+,\s*"text":\s*"",\s*"start":\s*0,\s*"stop":\s*0\s*\}'
_ADDED_BEFORE = re.compile(rb"\[(?:\s*%b\s*,?)*" % _ADDED)
_ADDED_AFTER = re.compile(rb"(?:,\s*%b\s*)*\]$" % _ADDED)
_MOST_BYTES_AFTER = 1000


def count_of_prompt(answer: bytes) -> int:
    """Return how many tokens an answer of `/chat_tokenize` lists. Raise `Misbehaved`."""
    if b'"tokenize_response":' not in answer:
        raise Misbehaved("/chat_tokenize lists no tokens")
    return answer.count(_TOKEN)


def count_of_text(answer: bytes) -> int:
    """Return how many tokens an answer of `/tokenize` lists, without those that stand for nothing of the text.

    All of them seem to where a slow tokenizer tells no offsets; then all are counted. Raise `Misbehaved`.
    """
    answer = answer.strip()
    before = _ADDED_BEFORE.match(answer)
    if before is None or not answer.endswith(b"]"):
        raise Misbehaved("/tokenize lists no tokens")
    count = answer.count(_TOKEN)
    added = before[0].count(_TOKEN)
    if added == count:
        return count
    after = _ADDED_AFTER.search(answer, max(0, len(answer) - _MOST_BYTES_AFTER))
    return count - added - (after[0].count(_TOKEN) if after else 0)
