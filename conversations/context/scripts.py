"""Which script a text is written in, as far as it tells whether another one is in the same language."""

import regex

_WORD = regex.compile(r"[\p{L}\p{N}]+")
_SCRIPTS = {
    name: regex.compile(pattern)
    for name, pattern in {
        "latin": r"\p{Latin}",
        "east asian": r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}]",
        "hangul": r"\p{Hangul}",
        "cyrillic": r"\p{Cyrillic}",
        "greek": r"\p{Greek}",
        "arabic": r"\p{Arabic}",
        "hebrew": r"\p{Hebrew}",
        "devanagari": r"\p{Devanagari}",
        "bengali": r"\p{Bengali}",
        "tamil": r"\p{Tamil}",
        "thai": r"\p{Thai}",
        "georgian": r"\p{Georgian}",
        "armenian": r"\p{Armenian}",
    }.items()
}


def is_in_another_script(title: str, question: str) -> bool:
    """Whether a title is written in letters that are hardly the question's, and not in words of the question.

    Of Latin letters a question has some whatever its language, so half of it must be Latin; of others it has any only
    if it is in such a language, or asks about one.
    """
    counts = _letters(title)
    script = max(counts, key=counts.__getitem__)
    asked = _letters(question)
    if not counts[script] or not sum(asked.values()):
        return False
    least = sum(asked.values()) / 2 if script == "latin" else 1
    if asked[script] >= least:
        return False
    known = question.casefold()
    return any(word.casefold() not in known for word in _WORD.findall(title))


def _letters(text: str) -> dict[str, int]:
    return {name: len(letters.findall(text)) for name, letters in _SCRIPTS.items()}
