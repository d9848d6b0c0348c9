"""Turns an answer's Markdown into safe HTML. `static/js/markdown/` builds the same DOM while an answer is written."""

import re
from collections.abc import Callable, Sequence
from html import escape

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

HEADING_SHIFT = 2
"""The page's own headings come first: an answer's `#` is a third-level heading."""
LINK_GUARDS = "noopener noreferrer nofollow"
_LINKABLE = re.compile(r"^(?:https?://|mailto:)", re.IGNORECASE)
# Explicit classes, since `\s` differs between Python and JavaScript.
_BARE_ADDRESS = re.compile(
    r"https?://[^\x00-\x20\x7f-\xa0\u2028\u2029\u3000<>\"`、。，！？；：）」』】》]+",  # noqa: RUF001
    re.IGNORECASE,
)
_TRAILING_PUNCTUATION = re.compile(r"[.,;:!?'*_~)\]}]+$")
_LANGUAGE = re.compile(r"^[A-Za-z0-9_+#.-]{1,30}$")

_TAGS = {
    *("p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "hr", "br", "pre", "code", "code-block"),
    *("em", "strong", "s", "a", "div", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {
    "a": {"href", "title", "rel", "target", "class"},
    "ol": {"dir", "start"},
    "code-block": {"data-language"},
    "pre": {"tabindex"},
    "div": {"class", "tabindex"},
    "th": {"dir", "data-align"},
    "td": {"dir", "data-align"},
    **{tag: {"dir"} for tag in ("p", "h3", "h4", "h5", "h6", "ul", "blockquote")},
}


def render(text: str) -> SafeString:
    """Return the Markdown as HTML: no raw HTML, no images, only guarded web and mail links."""
    html = _rendered(_parser.parse(text))
    # The second belt: what the renderer above may one day get wrong does not reach a page.
    clean = nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes={"http", "https", "mailto"}, link_rel=None)
    return mark_safe(clean)  # noqa: S308


def _rendered(tokens: Sequence[Token]) -> str:
    return "".join(_RULES.get(token.type, _element)(token) for token in tokens)


def _element(token: Token) -> str:
    if token.hidden:
        return ""
    if token.nesting == -1:
        return f"</{token.tag}>"
    return _opened(token.tag, {"dir": "auto" if token.type in _HAS_DIRECTION else None})


_HAS_DIRECTION = {"paragraph_open", "bullet_list_open", "blockquote_open"}


def _opened(tag: str, attributes: dict[str, str | None]) -> str:
    written = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items() if value is not None)
    return f"<{tag}{written}>"


def _heading(token: Token) -> str:
    tag = f"h{min(6, int(token.tag[1]) + HEADING_SHIFT)}"
    return _opened(tag, {"dir": "auto"}) if token.nesting == 1 else f"</{tag}>"


def _ordered_list(token: Token) -> str:
    start = token.attrGet("start")
    return _opened("ol", {"dir": "auto", "start": None if start is None else str(start)})


def _cell(token: Token) -> str:
    alignment = str(token.attrGet("style") or "").removeprefix("text-align:")
    return _opened(token.tag, {"dir": "auto", "data-align": alignment or None})


def _code_block(token: Token) -> str:
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    shown = language if _LANGUAGE.match(language) else None
    opened = _opened("code-block", {"data-language": shown})
    return f'{opened}<pre tabindex="0"><code>{_text(token)}</code></pre></code-block>'


def _text(token: Token) -> str:
    # A browser's parser turns CR into LF; so does the script, lest the two differ.
    return escape(token.content.replace("\r", "\n"), quote=False)


def _link(token: Token) -> str:
    title = token.attrGet("title")
    return _opened_link(str(token.attrGet("href") or ""), title=None if title is None else str(title))


def _opened_link(href: str, *, title: str | None = None, css_class: str | None = None) -> str:
    guards = {"rel": LINK_GUARDS, "target": "_blank"}
    return _opened("a", {"href": href, "title": title, "class": css_class, **guards})


def _image(token: Token) -> str:
    source = str(token.attrGet("src") or "")
    label = _plain(token.children or []) or source
    return f"{_opened_link(source, css_class='image-link')}{escape(label, quote=False)}</a>"


def _plain(tokens: Sequence[Token]) -> str:
    """Return an image's description without its markup."""
    parts = (_plain(token.children or []) if token.type == "image" else token.content for token in tokens)
    return "".join(parts).replace("\r", "\n")


_RULES: dict[str, Callable[[Token], str]] = {
    "heading_open": _heading,
    "heading_close": _heading,
    "ordered_list_open": _ordered_list,
    "th_open": _cell,
    "td_open": _cell,
    "table_open": lambda token: '<div class="table" tabindex="0"><table>',
    "table_close": lambda token: "</table></div>",
    "fence": _code_block,
    "code_block": _code_block,
    "hr": lambda token: "<hr>",
    "inline": lambda token: _rendered(token.children or []),
    "text": _text,
    "code_inline": lambda token: f"<code>{_text(token)}</code>",
    "softbreak": lambda token: "\n",
    "hardbreak": lambda token: "<br>\n",
    "link_open": _link,
    "image": _image,
}


def _link_bare_addresses(state: StateCore) -> None:
    """Make `https://…` in running text a link. Own rule, so that both languages agree to the character."""
    for token in state.tokens:
        if token.type == "inline" and token.children and "://" in token.content:
            token.children = _with_links(state, token.children)


def _with_links(state: StateCore, tokens: list[Token]) -> list[Token]:
    linked: list[Token] = []
    depth = 0
    for token in tokens:
        depth += token.nesting if token.type in ("link_open", "link_close") else 0
        linked.extend([token] if depth or token.type != "text" else _split_at_addresses(state, token))
    return linked


def _split_at_addresses(state: StateCore, token: Token) -> list[Token]:
    parts: list[Token] = []
    position = 0
    for match in _BARE_ADDRESS.finditer(token.content):
        address = _trimmed(match.group())
        href = state.md.normalizeLink(address)
        if address.endswith("//") or not state.md.validateLink(href):
            continue
        parts.append(Token("text", "", 0, content=token.content[position : match.start()]))
        parts.append(Token("link_open", "a", 1, attrs={"href": href}))
        parts.append(Token("text", "", 0, content=address))
        parts.append(Token("link_close", "a", -1))
        position = match.start() + len(address)
    parts.append(Token("text", "", 0, content=token.content[position:]))
    return parts


def _trimmed(address: str) -> str:
    """Leave out what ends the sentence rather than the address; keep a bracket that was opened inside."""
    trimmed = _TRAILING_PUNCTUATION.sub("", address)
    if address[len(trimmed) : len(trimmed) + 1] == ")" and "(" in trimmed:
        return trimmed + ")"
    return trimmed


def _made_parser() -> MarkdownIt:
    parser = MarkdownIt("js-default", {"html": False})
    parser.validateLink = lambda url: _LINKABLE.match(url.strip()) is not None  # type: ignore[method-assign]
    parser.core.ruler.push("bare_addresses", _link_bare_addresses)
    return parser


_parser = _made_parser()
