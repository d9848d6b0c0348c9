"""Names, numbers and codes: what a restatement must not lose, and what it lost nevertheless."""

from collections import Counter
from collections.abc import Sequence

import regex

MOST_QUOTED_CHARACTERS = 240
_MOST_QUOTES = 8
_MOST_READ_CHARACTERS = 20_000
_MOST_NAMES_PER_WORD = 0.2
"""Where more of the words have capitals, as in German, capitals do not tell names."""
_NUMBER_OR_CODE = regex.compile(
    r"\d[\dA-Za-z.,:/_-]*(?<=[\dA-Za-z])|[A-Za-z_-]*[A-Za-z][\d_-][\dA-Za-z_-]*(?<=\d)|[A-Z]{3,}", regex.ASCII
)
_NAME = regex.compile(r"(?<=[\p{L}\p{N},;:'\"\u2019)] )\p{Lu}\p{Ll}{2,}")
_WORD = regex.compile(r"\p{L}{2,}")
_SENTENCE_END = regex.compile(r"(?<=[.!?])(?<!\b\d{1,2}\.)\s+|(?<=[。\uff01\uff1f])\s*|\n+")
_STEM = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]{2}|\b\p{L}{4,5}")
_LEAST_STEMS_KEPT = 0.25
"""Who shortens a line uses other words too; of one that has less of its words left, nothing was kept."""
_LEAST_STEMS = 3
"""A sentence of fewer words is hardly a fact."""
_CODE_BLOCK = regex.compile(r"```.*?(?:```|\Z)", regex.DOTALL)


def quotes_left_out(spoken: Sequence[str], notes: str) -> list[str]:
    """Return sentences that the notes forgot, or of which they lack a name, a number or a code: few and short ones.

    A question that was forgotten is none of them: its answer was given.
    """
    texts = [_CODE_BLOCK.sub("\n", text[:_MOST_READ_CHARACTERS]) for text in spoken]
    tells_names = _capitals_tell_names("\n".join(texts))
    known, inexact, forgotten = notes.casefold(), list[str](), list[str]()
    for sentence in (each.strip() for text in texts for each in _SENTENCE_END.split(text)):
        if len(inexact) == _MOST_QUOTES:
            break
        if len(sentence) > MOST_QUOTED_CHARACTERS:
            continue
        if not _has_all(known, sentence, tells_names=tells_names):
            inexact.append(sentence)
        elif len(forgotten) < _MOST_QUOTES and _is_statement(sentence) and not _remembers(known, sentence):
            forgotten.append(sentence)
        else:
            continue
        known += "\n" + sentence.casefold()
    return [*inexact, *forgotten][:_MOST_QUOTES]


def lines_left_out(notes: str, shorter: str) -> list[str]:
    """Return the lines of the notes that the shorter ones forgot, or of which they lack a name, a number or a code."""
    known, tells_names = shorter.casefold(), _capitals_tell_names(notes)
    return [
        line
        for line in notes.splitlines()
        if not (_has_all(known, line, tells_names=tells_names) and _remembers(known, line))
    ]


def _is_statement(sentence: str) -> bool:
    return not sentence.endswith(("?", "\uff1f")) and len(_STEM.findall(sentence)) >= _LEAST_STEMS


def has_number_or_code(line: str) -> bool:
    """Whether something in a line is right only if every character is."""
    return _NUMBER_OR_CODE.search(line) is not None


def repeated_percents(lines: Sequence[str]) -> list[int]:
    """Return how much of each line's words and numbers stands in another line too, in steps of ten percent."""
    words = [{each.casefold() for each in (*_STEM.findall(line), *_NUMBER_OR_CODE.findall(line))} for line in lines]
    counts = Counter(word for each in words for word in each)
    return [10 * (10 * sum(counts[word] > 1 for word in each) // len(each)) if each else 100 for each in words]


def _remembers(known: str, line: str) -> bool:
    stems = {stem.casefold() for stem in _STEM.findall(line)}
    return sum(stem in known for stem in stems) >= _LEAST_STEMS_KEPT * len(stems)


def _has_all(known: str, sentence: str, *, tells_names: bool) -> bool:
    found = _NUMBER_OR_CODE.findall(sentence) + (_NAME.findall(sentence) if tells_names else [])
    return all(_has(known, particular.casefold()) for particular in found)


def _has(known: str, particular: str) -> bool:
    # Not by the digits of another number: 5 is not in 555.
    return regex.search(rf"(?<!\d){regex.escape(particular)}(?!\d)", known) is not None


def _capitals_tell_names(text: str) -> bool:
    return len(_NAME.findall(text)) <= _MOST_NAMES_PER_WORD * len(_WORD.findall(text))
