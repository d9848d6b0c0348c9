"""How models begin when they refuse, in the languages in which they are asked most."""
# ruff: noqa: RUF001 - apostrophes come in two forms

import regex

_REFUSAL = regex.compile(
    r"^(?:i['’]?m (?:really |very |so )?sorry|i am sorry|sorry\b|i apologi[sz]e|unfortunately\b|as an ai\b"
    r"|i (?:cannot|can['’]?t|can not|am unable|am not able|won['’]?t|don['’]?t)\b|i['’]m (?:unable|not able)\b"
    r"|es tut mir leid|tut mir leid|ich kann (?:leider )?nicht|je suis désolée?|désolée?\b|je ne peux pas"
    r"|lo siento|no puedo|mi dispiace|non posso|desculpe|não posso|извините|к сожалению|я не могу"
    r"|抱歉|对不起|對不起|很抱歉|申し訳|すみません|죄송)",
    regex.IGNORECASE,
)


def is_refusal(text: str) -> bool:
    """Whether the text begins as refusals do."""
    return _REFUSAL.match(text) is not None
