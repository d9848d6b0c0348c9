"""How models begin when they refuse, in the languages in which they are asked most."""
# ruff: noqa: RUF001 - apostrophes come in two forms

import regex

_APOLOGY = regex.compile(
    r"^(?:i['’]?m (?:really |very |so )?sorry|i am sorry|sorry[,.]|i apologi[sz]e|as an ai\b"
    r"|es tut mir leid|tut mir leid|je suis désolée?|désolée?\b|lo siento|mi dispiace|desculpe|извините"
    r"|抱歉|对不起|對不起|很抱歉|申し訳|すみません|죄송)",
    regex.IGNORECASE,
)
_INABILITY = regex.compile(
    r"^(?:sorry\b|unfortunately\b|i (?:cannot|can['’]?t|can not|am unable|am not able|won['’]?t|don['’]?t)\b"
    r"|i['’]m (?:unable|not able)\b|ich kann (?:leider )?nicht|je ne peux pas|no puedo|non posso|não posso"
    r"|к сожалению|я не могу)",
    regex.IGNORECASE,
)


def is_apology(text: str) -> bool:
    """Whether the text begins as only refusals do, and no fact."""
    return _APOLOGY.match(text) is not None


def is_refusal(text: str) -> bool:
    """Whether the text begins as refusals do, though a fact may too: "I can't eat nuts"."""
    return is_apology(text) or _INABILITY.match(text) is not None
