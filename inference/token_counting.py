"""How many tokens a text or a prompt has, by the tokenizer of the model that will read it."""

import asyncio
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakKeyDictionary

import structlog

from inference.count_now import count_now, count_prompt_now
from inference.messages import ChatMessage
from inference.model_server import ModelServer
from inference.replica_state import ReplicaState
from inference.template_tokens import SUPPOSED, TemplateTokens, measure_template
from inference.tgi.errors import ModelServerError, NotOffered
from inference.tokenizer_files import count_by_file

__all__ = ["TemplateTokens", "TokenCounter", "count_now", "count_prompt_now", "counter_of", "upper_bound"]

log = structlog.get_logger(__name__)

_MOST_REQUESTS = 8
_MOST_REMEMBERED = 512
_LONGEST_REMEMBERED = 8_192
"""Characters. Instructions, memories and summaries stand in prompt after prompt; messages have stored counts."""


class TokenCounter(Protocol):
    """Counts for one replica. Its methods raise `ModelServerError`.

    `name` is what counts are stored under: the tokenizer's name. Once `is_exact` is false, the server could not say,
    and some counts were upper bounds, which are not worth storing.
    """

    name: str
    is_exact: bool

    async def count_texts(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each content has, without the template's."""
        ...

    async def count_prompt(self, messages: Sequence[ChatMessage]) -> int:
        """Return how many tokens the server makes of a whole prompt, template included."""
        ...

    async def template(self) -> TemplateTokens:
        """Return the most that the chat template adds; asked of a server once."""
        ...


def counter_of(state: ReplicaState) -> TokenCounter:
    """Return a counter for one prompt to a replica; it knows what earlier ones have found out."""
    return _ReplicaCounter(_name_of(state), state.server, state.version.tokenizer, _served_by(state))


def upper_bound(text: str) -> int:
    """Return the most tokens that a text can have: its bytes of UTF-8, since a token stands for at least one.

    Tokenizers normalise what they read, and there are characters of which that makes more.
    """
    if text.isascii():
        return len(text)
    return max(len(form.encode(errors="surrogatepass")) for form in (text, unicodedata.normalize("NFC", text)))


@dataclass(slots=True)
class _Known:
    """What is known of a server: its template and some counts, of which model, whether it was said not to count."""

    served: str = ""
    template: TemplateTokens | None = None
    counts: dict[str, int] = field(default_factory=dict)
    is_reported: bool = False
    measuring: asyncio.Lock = field(default_factory=asyncio.Lock)


_known: WeakKeyDictionary[ModelServer, _Known] = WeakKeyDictionary()
"""By the connection to a server, which belongs to one event loop, and ends with it."""


@dataclass(slots=True)
class _ReplicaCounter:
    """Counts texts with a file where the version has one, else by asking; prompts always by asking."""

    name: str
    _server: ModelServer
    _tokenizer: str
    _served: str
    is_exact: bool = True

    async def count_texts(self, texts: Sequence[str]) -> list[int]:
        try:
            return await self._count(texts)
        except NotOffered:
            self._note_bounds()
            return [upper_bound(text) for text in texts]

    async def count_prompt(self, messages: Sequence[ChatMessage]) -> int:
        try:
            return await self._server.count_tokens(messages)
        except NotOffered:
            self._note_bounds()
        own = sum(await self.count_texts([message.content for message in messages]))
        return own + SUPPOSED.base + SUPPOSED.per_message * len(messages)

    async def template(self) -> TemplateTokens:
        known = self._known_of_it()
        async with known.measuring:
            if known.template is None:
                try:
                    known.template = await measure_template(self._count, self._server.count_tokens)
                except NotOffered:
                    self._note_bounds()
                    return SUPPOSED
            return known.template

    def _known_of_it(self) -> _Known:
        """Return what is known of the server while it serves this model."""
        known = _known.setdefault(self._server, _Known())
        if known.served != self._served:
            known.served, known.template, known.counts = self._served, None, {}
        return known

    async def _count(self, texts: Sequence[str]) -> list[int]:
        """Count each text once. Raise `NotOffered` where the server cannot."""
        distinct = list(dict.fromkeys(texts))
        counts = await count_by_file(self._tokenizer, distinct)
        if counts is None:
            counts = await self._remembered_or_asked(distinct)
        by_text = dict(zip(distinct, counts, strict=True))
        return [by_text[text] for text in texts]

    async def _remembered_or_asked(self, texts: Sequence[str]) -> list[int]:
        """Return the counts, those of texts that were asked for lately without asking again."""
        remembered = self._known_of_it().counts
        by_text = {text: remembered[text] for text in texts if text in remembered}
        asked = [text for text in texts if text not in by_text]
        by_text |= zip(asked, await self._ask_for_each(asked), strict=True)
        for text in texts:
            remembered.pop(text, None)
            if len(text) <= _LONGEST_REMEMBERED:
                remembered[text] = by_text[text]
        while len(remembered) > _MOST_REMEMBERED:
            del remembered[next(iter(remembered))]  # the one that was used least lately
        return [by_text[text] for text in texts]

    async def _ask_for_each(self, texts: Sequence[str]) -> list[int]:
        places = asyncio.Semaphore(_MOST_REQUESTS)

        async def ask(text: str) -> int:
            async with places:
                return await self._server.count_text(text)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(ask(text)) for text in texts]
        except ExceptionGroup as failures:
            failed, others = failures.split(ModelServerError)
            if failed is None or others is not None:
                raise
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    def _note_bounds(self) -> None:
        self.is_exact = False
        known = _known.setdefault(self._server, _Known())
        if not known.is_reported:
            known.is_reported = True
            log.warning("tokens_not_counted", served=self._served)


def _name_of(state: ReplicaState) -> str:
    return state.version.tokenizer or _served_by(state)


def _served_by(state: ReplicaState) -> str:
    """Return the served model's name, with its revision where the server tells it."""
    sha = state.info.model_sha if state.info else None
    model = state.model_id or state.version.name
    return f"{model}@{sha}" if sha else model
