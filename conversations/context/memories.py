# ruff: noqa: RUF001 — the letters and marks of many languages
"""Finds in a message what its writer deliberately asks to have remembered."""

import re

_MOST_CHARACTERS = 20_000
_FEWEST_WORDS = 2
_FEWEST_IDEOGRAPHS = 3

_FIRST_PERSON = (
    r"(?=(?:I|I['’]\w+|my|mine|we|we['’]\w+|our"
    r"|ich|mein\w*|mir|mich|wir|unser\w*"
    r"|je|j['’]\w+|mon|ma|mes|moi|nous|notre|nos"
    r"|yo|mi|mis|me|soy|tengo|vivo|nosotros|nuestr\w+"
    r"|io|il mio|la mia|i miei|le mie|sono|ho|noi|nostr\w"
    r"|eu|meu|minha|meus|minhas|sou|tenho|moro|nós|noss\w+"
    r"|ik|mijn|wij|ons|onze"
    r"|я|мой|моя|моё|мои|мне|меня|у меня|мы|наш\w*|у нас)\b)"
)
_REMINISCENCE = r"(?!(?:I|we)\s+(?:told|asked|said|mentioned|sent|wrote|talked|spoke|discussed)\b)"
_POINTED_AT = (
    r"(?!(?:time|times|day|night|year|summer|moment|one|guy|man|woman|person|song|movie|film|book|game|show|place|story"
    r"|trip|party|chat|conversation|thing|quote|line|scene|phrase)\b)"
)

# Each matches from the message's beginning to where the fact begins.
_REQUESTS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # English
        r"(?:(?:hey|hi|hello|ok|okay|also)\b[,!.]?\s+)?"
        r"(?P<asks>(?:can|could|would|will)\s+you\s+please\s+)?(?:please,?\s+)?(?:always\s+)?remember(?:\s+this|\s+for\s+(?:me|later|the\s+future))?(?:,?\s+please\b)?"
        rf"(?:(?P<colon>\s*[:：]\s*)|,?\s+that\s+{_POINTED_AT}{_REMINISCENCE}|\s+{_FIRST_PERSON}{_REMINISCENCE}"
        r"|\s+to\s+(?=(?:always|never)\b))",
        # German
        r"(?:bitte\s+)?(?:merke?\s+dir|merken\s+Sie\s+sich|erinnere?\s+dich\s+daran|erinnern\s+Sie\s+sich\s+daran)"
        rf"(?:\s+bitte)?(?:(?P<colon>\s*:\s*)|,?\s+da(?:ss|ß)\s+|,\s+{_FIRST_PERSON})",
        # French
        r"(?:s['’]il\s+(?:te|vous)\s+pla[iî]t,?\s+)?"
        r"(?:souviens-toi|souvenez-vous|rappelle-toi|rappelez-vous|retiens|retenez|mémorisez?)(?:\s+bien)?"
        r"(?:,?\s+s['’]il\s+(?:te|vous)\s+pla[iî]t,?)?(?:(?P<colon>\s*:\s*)|\s+qu(?:e\s+|['’]\s*))",
        # Spanish
        r"(?:por\s+favor,?\s+)?(?:recuerd[ae]|recordá|acuérdate|acuérdese|memori[cz][ae])(?:,?\s+por\s+favor,?)?"
        r"(?:(?P<colon>\s*:\s*)|\s+(?:de\s+)?que\s+)",
        # Italian
        r"(?:per\s+favore,?\s+)?(?:ricorda(?:ti)?|si\s+ricordi|memorizza|tieni\s+a\s+mente)(?:,?\s+per\s+favore,?)?"
        r"(?:(?P<colon>\s*:\s*)|\s+che\s+)",
        # Portuguese
        r"(?:por\s+favor,?\s+)?(?:lembr[ae](?:-[ts]e)?|recorda(?:-te)?|memori[zs][ae])(?:,?\s+por\s+favor,?)?"
        r"(?:(?P<colon>\s*:\s*)|\s+(?:de\s+)?que\s+)",
        # Dutch
        r"(?:alsjeblieft,?\s+)?onthoudt?(?:\s+u)?(?:\s+(?:alsjeblieft|alstublieft|even|goed))*"
        rf"(?:(?P<colon>\s*:\s*)|,?\s+dat\s+|,?\s+{_FIRST_PERSON})",
        # Russian
        r"(?:пожалуйста,?\s+)?(?:запомни|помни)(?:те)?(?:,?\s+пожалуйста)?"
        rf"(?:(?P<colon>\s*:\s*)|,?\s+что\s+|,\s+{_FIRST_PERSON})",
        # Chinese
        r"(?:请|請|麻烦你?|麻煩你?|帮我|幫我|你?一定要)*(?:(?:记住|記住)(?:(?P<colon>\s*[，,：:]\s*)|(?=我|咱))|(?:记得|記得)(?=我|咱))",
        # Japanese, where the fact follows
        r"(?:覚えて|記憶して)(?:おいて)?(?:ください|下さい|ね)?(?P<colon>[：:、。]\s*)",
    )
]
_JAPANESE_REQUEST = re.compile("覚えて|記憶して")
_JAPANESE_END = re.compile(
    r"(?P<fact>.+?)(?:という)?(?:と|って|ことを?)(?:ずっと|ちゃんと|必ず)?"
    r"(?:覚えておいて|記憶しておいて|(?:覚えて|記憶して)(?=ください|下さい|ほしい|欲しい|ね))"
    r"(?:ください|下さい|ほしい|欲しい|ね)*(?:[。！!.]?|、.+[？?])"
)
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？]")
_LONGEST_ABBREVIATION, _MOST_SPACES = 12, 24
_NO_END = re.compile(r"(?:\b(?:[^\W\d_]|[Dd]r|Mrs?|Ms|St|Prof|vs|approx|ca|etc|bzw|Nr|No|e\.g|i\.e|z\.B|d\.h))\.$")
_QUESTION = re.compile(r"[?？؟][\"'”’»)\]]*$")
_PLEASE_AT_END = re.compile(
    r",?\s*(?:please|bitte|s['’]il (?:te|vous) pla[iî]t|por favor|per favore|alsjeblieft|пожалуйста)(?=[.!]*$)",
    re.IGNORECASE,
)
_ABOUT_THE_WRITER = re.compile(_FIRST_PERSON + r"|我|咱|私|僕|俺", re.IGNORECASE)
_SUBJECT = (
    r"(?:(?:I|we)\b(?!['’]d\b|\s+(?:was|were|had|did|went|saw|met|got|\w+ed)\b)"
    r"|(?:ich|wir|je|nous|yo|soy|tengo|vivo|nosotros|io|sono|ho|noi|eu|sou|tenho|moro|nós|ik|wij|я|мы|у меня)\b|j['’]"
    r"|我|咱|(?:my|our|mein\w*|unser\w*|mon|ma|mes|notre|nos|mi|mis|nuestr\w+|il mio|la mia|i miei|le mie|nostr\w|meus?"
    r"|minhas?|noss\w+|mijn|onze?)\b[^,;]*(?:['’]s|\b(?:is|are|has|have|ist|sind|hat|haben|est|sont|es|son|tiene|è|ha|é"
    r"|são|tem|heeft|zijn))\b)"
)
_STATEMENT = re.compile(_SUBJECT, re.IGNORECASE)
_OKAY = re.compile(
    r"(?:[,，;]\s*|\s)(?:ok|okay|alright|all right|please|(?:will|would|can|could) you(?: please)?|bitte"
    r"|in ordnung|d['’]accord|s['’]il (?:te|vous) pla[iî]t|vale|de acuerdo|por favor|va bene|per favore|tá bem|oké"
    r"|alsjeblieft|хорошо|ладно|пожалуйста|好吗|好嗎|可以吗|可以嗎|行吗|好不好)\s*[?？]$",
    re.IGNORECASE,
)
_ASKED_BESIDES = re.compile(
    r"(?:[,;]|\s[-–—])\s*(?:(?:and|so|now|then|und|also|dann|et|alors|e|allora|então|en|dus|dan|и)\s+)?"
    r"(?:¿.|(?:what|how|why)(?:['’]\w+)?\s+\w+(?=\s)"
    r"|(?:can|could|would|will|shall|should|is|are|am|do|does|may|might|have)\s+(?:I|you|we|it|he|she|they|there|this|that"
    r"|my|our|the|an?)\s+(?!(?:still\s+)?remember\b)\w"
    r"|(?:was|wie|warum|wieso|welche[mnrs]?|(?:kann|soll|darf|muss|könnte)\s+(?:ich|man)|kannst\s+du|gibt\s+es)\s+\w"
    r"|(?:qu['’]est-ce|est-ce|que\s+(?:puis|peux|dois|faire|me)|quel\w*|comment|pourquoi|puis-je|peux-tu|pouvez-vous)\W*\w"
    r"|(?:che\s+)?cosa\s+\w|(?:quali?|perché|posso|puoi)\s+\w"
    r"|(?:o\s+que|quais|qual|por\s+que|posso|podes|pode)\s+\w"
    r"|(?:wat|hoe|waarom|welke?|(?:kan|mag|moet)\s+ik|kun\s+je)\s+\w"
    r"|(?:что\s+(?:мне|можно|я|ты|приготовить|посоветуешь)|как(?:ой|ая|ое|ие)?|почему|можно\s+ли|могу\s+ли|можешь)\s+\w)"
    r"|，(?=[^，]*(?:什么|什麼|怎么|怎麼|哪|吗|嗎|呢|多少|几|幾|谁|誰))(?!(?:对|對|是|记得|記得|没错)[吗嗎])",
    re.IGNORECASE,
)
_IDEOGRAPHS = re.compile(r"[぀-ヿ㐀-鿿]")


def fact_to_remember(text: str) -> str | None:
    """Return the fact that a message asks to have remembered, on one line; `None` where it asks for no such thing.

    Only a request at the very beginning counts: what is asked later, quoted, or stands in code may be somebody else's.
    One sentence is taken, without a question that it ends in ("I'm vegan, what can I cook?"); after a colon also those
    that follow about the writer. What is nothing but a question is no request ("remember that time?"), nor is
    reminiscing ("remember that I told you …"), nor a task: nothing here would remind anybody to buy milk, but "remember
    to always answer in metric units" holds for every answer. Where it is doubtful, nothing is found: whoever misses a
    memory says it again, but a wrong one is in every prompt.
    """
    beginning = text[:_MOST_CHARACTERS].strip()
    for request in _REQUESTS:
        if found := request.match(beginning):
            return _fact(found, beginning[found.end() :])
    return _fact_before_its_request(beginning) if _JAPANESE_REQUEST.search(beginning) else None


def _fact_before_its_request(text: str) -> str | None:
    found = _JAPANESE_END.fullmatch(_sentences(text)[0])
    return found["fact"] if found and _says_something(found["fact"]) else None


def _fact(request: re.Match[str], rest: str) -> str | None:
    groups = request.groupdict()
    first, *others = _sentences(rest) or [""]
    first = _stated(first)
    if groups.get("asks"):
        first = _QUESTION.sub("", first)
    if _QUESTION.search(first) or not _says_something(first):
        return None
    taken = [first]
    for sentence in others if groups.get("colon") else ():
        if _QUESTION.search(sentence) or not _ABOUT_THE_WRITER.match(sentence):
            break
        taken.append(sentence)
    return _PLEASE_AT_END.sub("", " ".join(" ".join(taken).split()))


def _stated(sentence: str) -> str:
    """Return what a question's beginning states about the writer; where it states nothing, all of it."""
    if not _QUESTION.search(sentence) or not _STATEMENT.match(sentence):
        return sentence
    asked = _ASKED_BESIDES.search(sentence) or _OKAY.search(sentence)
    return sentence[: asked.start()] if asked else sentence


def _sentences(text: str) -> list[str]:
    """Return the sentences of the first line."""
    line = text.split("\n", 1)[0].strip()
    sentences, begin = [], 0
    for end in _SENTENCE_END.finditer(line):
        # Only so much is looked at: a line may be one long row of abbreviations.
        follows = line[end.end() : end.end() + _MOST_SPACES].lstrip()[:1]
        if _NO_END.search(line, max(begin, end.end() - _LONGEST_ABBREVIATION), end.end()) or follows.islower():
            continue
        sentences.append(line[begin : end.end()].strip())
        begin = end.end()
    return [sentence for sentence in (*sentences, line[begin:].strip()) if sentence]


def _says_something(fact: str) -> bool:
    if _IDEOGRAPHS.search(fact):
        return len(_IDEOGRAPHS.findall(fact)) >= _FEWEST_IDEOGRAPHS
    return len(fact.split()) >= _FEWEST_WORDS
