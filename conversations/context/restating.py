"""How what a model wrote becomes the text of a summary: continued, or condensed, and nothing exact is lost."""

from collections.abc import Sequence

from conversations.context.material import Said
from conversations.context.particulars import has_number_or_code, lines_left_out, quotes_left_out, repeated_percents
from conversations.context.summaries import points_from
from foundation.text import truncated
from inference.messages import Role

RULES_TOKENS = 200
"""What the instructions have, at most, and what a chat template adds."""
_ASCII_PER_TOKEN = 4
_SHORTER_PERCENT = 90
"""Notes that are hardly shorter are not worth a prompt that begins anew."""
_REWRITTEN_PERCENT = 30
"""A model that wrote less than this of the notes did not shorten them, but forgot them."""
_REPEATED_PERCENT = 75
"""A line of which more stands in other lines is said again and again."""
_LINE_CHARACTERS = (240, 160, 120, 100)
_ROOM_PERCENT = 80
"""Of the share, so that the next points fit."""


def tokens_of(text: str) -> int:
    """Return about how many tokens a text has: enough to say when notes are too long; prompts are counted exactly."""
    others = sum(not character.isascii() for character in text)
    return (len(text) - others) // _ASCII_PER_TOKEN + others


def continued(notes: str, written: str, messages: Sequence[Said]) -> str | None:
    """Return the notes, unchanged, and the points behind them; `None` where the model wrote none.

    Names, numbers and codes that the model forgot follow in the user's own words.
    """
    points = points_from(written)
    if points is None:
        return None
    return "\n".join([*notes.splitlines(), *_added(notes, points, messages, roles=("user",))])


def condensed(notes: str, written: str, messages: Sequence[Said], *, share_tokens: int) -> str | None:
    """Return shorter notes: as the model wrote them, and what it lost; `None` where it wrote no points at all.

    Of a model that did not shorten them, as small ones do not, only what is new is taken; then the long lines of the
    notes lose their ends.
    """
    points = points_from(written)
    if points is None:
        return None
    rewritten = "\n".join([*lines_left_out(notes, points), points])
    text = "\n".join([rewritten, *_quoted(messages, rewritten, roles=("user",))])
    is_rewritten = _percent(points, notes) >= _REWRITTEN_PERCENT
    if is_rewritten and _percent(text, notes) <= _SHORTER_PERCENT:
        return text
    added = _added(notes, points, messages, roles=("user", "assistant"))
    if is_rewritten and len(added) > len(points.splitlines()) // 2:  # the old ones in other words
        added = _added(notes, "", messages, roles=("user", "assistant"))
    return "\n".join([*_shortened(notes.splitlines(), share_tokens * _ROOM_PERCENT // 100), *added])


def _added(notes: str, points: str, messages: Sequence[Said], *, roles: Sequence[Role]) -> list[str]:
    """Return the points that the notes do not have yet, and the quotes that neither has."""
    added = [*points.splitlines(), *_quoted(messages, f"{notes}\n{points}", roles=roles)]
    known = {line.casefold() for line in notes.splitlines()}
    return [line for line in added if line.casefold() not in known]


def _quoted(messages: Sequence[Said], known: str, *, roles: Sequence[Role]) -> list[str]:
    spoken = [message.content for message in messages if message.role in roles]
    return [f"- \u201c{quote}\u201d" for quote in quotes_left_out(spoken, known)]


def _shortened(lines: list[str], most_tokens: int) -> list[str]:
    """Return lines of which long ones lose their ends until all fit.

    If they still do not, some go: first those that say hardly anything but what others say too, then those without
    numbers. Of equal ones it is the one in the middle: as in a prompt, the earliest set the task and the latest carry
    the thread.
    """
    cut = lines
    for most in _LINE_CHARACTERS:
        cut = [truncated(line, most) for line in lines]
        if tokens_of("\n".join(cut)) <= most_tokens:
            return cut
    while len(cut) > 1 and tokens_of("\n".join(cut)) > most_tokens:
        del cut[_least_missed(cut)]
    return cut


def _least_missed(lines: list[str]) -> int:
    shares = repeated_percents(lines)
    places = [place for place, share in enumerate(shares) if share >= _REPEATED_PERCENT]
    places = (
        places or [place for place, line in enumerate(lines) if not has_number_or_code(line)] or [*range(len(lines))]
    )
    most = max(shares[place] for place in places)
    alike = [place for place in places if shares[place] == most]
    return alike[len(alike) // 2]


def _percent(text: str, of: str) -> int:
    return len(text.encode()) * 100 // len(of.encode())
