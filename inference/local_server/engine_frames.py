"""Turns the frames of the engine's completion stream into one event per token."""

import math
from typing import Any, Protocol

from inference.local_server.bodies import JsonObject
from inference.local_server.errors import GenerationError
from inference.local_server.tokens import AlternativeToken, EngineEvent, EngineStopped, Piece, PromptRead, Token


class Vocabulary(Protocol):
    """Knows how texts and tokens belong together."""

    async def tokenize(self, text: str, *, add_special: bool) -> list[Piece]: ...

    async def special_text(self, token_id: int) -> str: ...


class FrameReader:
    """Reads one stream. The engine keeps back the tokens of an unfinished character and sends one frame for all.

    Each token still becomes an event: those kept back come with an empty text just before the one that finishes the
    character. Their ids are those of the character's usual tokens, and their log-probabilities are unknown.
    """

    def __init__(self, vocabulary: Vocabulary, *, with_alternatives: bool) -> None:
        self._vocabulary = vocabulary
        self._with_alternatives = with_alternatives
        self._seen_tokens = 0
        self._has_begun = False
        self.has_ended = False

    async def read(self, frame: JsonObject) -> list[EngineEvent]:
        """The events of one frame. Raises `GenerationError` for the engine's own errors."""
        if "error" in frame:
            raise GenerationError(str(frame["error"].get("message", "the engine failed")))
        if "prompt_progress" in frame:
            return self._begin(frame["prompt_progress"])
        if frame["stop"]:
            self.has_ended = True
            lost = max(frame["tokens_predicted"] - self._seen_tokens, 0)
            return [EngineStopped(frame["stop_type"] == "eos", lost)]
        return [*await self._kept_back(frame), await self._token(frame)]

    def _begin(self, progress: JsonObject) -> list[EngineEvent]:
        if self._has_begun:
            return []
        self._has_begun = True
        return [PromptRead(progress["cache"])]

    async def _kept_back(self, frame: JsonObject) -> list[Token]:
        missing = frame["tokens_predicted"] - self._seen_tokens - 1
        self._seen_tokens = frame["tokens_predicted"]
        if missing < 1:
            return []
        usual = await self._vocabulary.tokenize(frame["content"], add_special=False)
        ids = [piece.id for piece in usual[:missing]]
        ids += [frame["tokens"][-1]] * (missing - len(ids))
        return [Token(token_id, "", None, special=False) for token_id in ids]

    async def _token(self, frame: JsonObject) -> Token:
        chosen = (frame.get("completion_probabilities") or [{}])[0]
        token_id = frame["tokens"][-1]
        special = frame["content"] == "" and not chosen.get("bytes")
        text = await self._vocabulary.special_text(token_id) if special else frame["content"]
        likeliest = chosen.get("top_logprobs") or chosen.get("top_probs") or []
        shown = likeliest if self._with_alternatives else []
        alternatives = [await self._alternative(entry) for entry in shown]
        return Token(token_id, text, _logprob(chosen), special, tuple(alternatives))

    async def _alternative(self, entry: JsonObject) -> AlternativeToken:
        special = not entry["bytes"]
        text = await self._vocabulary.special_text(entry["id"]) if special else _whole_characters(entry["bytes"])
        return AlternativeToken(entry["id"], text, _logprob(entry), special)


def _logprob(entry: JsonObject) -> float | None:
    """The engine gives a log-probability for greedy steps and a probability for drawn ones."""
    if "logprob" in entry:
        return _finite(entry["logprob"])
    probability = entry.get("prob")
    return math.log(probability) if probability else None


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _whole_characters(raw: list[int]) -> str:
    try:
        return bytes(raw).decode()
    except UnicodeDecodeError:
        return ""
