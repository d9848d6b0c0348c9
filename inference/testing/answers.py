"""The answer to a prompt: a pure function of the last user message, so that tests know every byte of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from inference.testing.directives import Directive, Finish, parse_directive
from inference.testing.pieces import made_up_pieces, split_into_pieces


@dataclass(frozen=True, slots=True)
class Answer:
    """The pieces to send and why they end: with a special end-of-sequence token, or on the last piece itself."""

    pieces: tuple[str, ...]
    finish: Finish
    has_eos: bool

    @property
    def text(self) -> str:
        """All that a reader should see."""
        return "".join(self.pieces)

    @property
    def token_count(self) -> int:
        """Generated tokens as TGI counts them: the end-of-sequence token too."""
        return len(self.pieces) + self.has_eos


def expected_answer(
    prompt: str, *, answer_tokens: int = 64, max_new_tokens: int | None = None, stop: Sequence[str] = ()
) -> str:
    """The text that an undisturbed twin answers to a last user message."""
    return bounded(whole_answer(prompt, answer_tokens), max_new_tokens, stop).text


def whole_answer(prompt: str, answer_tokens: int, *, at_most: int | None = None) -> Answer:
    """The answer before any limit of the request; of a made-up one only the first `at_most` pieces."""
    directive = parse_directive(prompt)
    pieces = _pieces(prompt, directive, answer_tokens, at_most)
    return Answer(pieces, directive.finish, has_eos=directive.finish == "stop" or not pieces)


def answer_with(text: str) -> Answer:
    """An answer of exactly this text, ended by the model itself."""
    return Answer(tuple(split_into_pieces(text)), "stop", has_eos=True)


def remaining(answer: Answer, partial: str) -> Answer:
    """What is left after `partial`, whose end was trimmed; all of it where it begins otherwise."""
    if not answer.text.startswith(partial):
        return answer
    ends = list(accumulate(len(piece) for piece in answer.pieces))
    done = next((number for number, end in enumerate(ends) if end > len(partial)), len(ends))
    if done == len(ends):
        return replace(answer, pieces=(), has_eos=True)
    begun = len(answer.pieces[done]) - (ends[done] - len(partial))
    return replace(answer, pieces=(answer.pieces[done][begun:], *answer.pieces[done + 1 :]))


def bounded(answer: Answer, max_new_tokens: int | None, stop: Sequence[str]) -> Answer:
    """The answer cut at a stop string (which stays in it) or at the token limit; at the same token, the limit wins."""
    if stop:
        answer = _cut_at_stop(answer, stop)
    if max_new_tokens is not None and answer.token_count >= max_new_tokens:
        return _cut_at_limit(answer, max_new_tokens)
    return answer


def _pieces(prompt: str, directive: Directive, answer_tokens: int, at_most: int | None) -> tuple[str, ...]:
    if directive.pieces is not None:
        return directive.pieces
    if directive.text is not None:
        return tuple(split_into_pieces(directive.text))
    if directive.echo:
        return tuple(split_into_pieces(directive.rest))
    return made_up_pieces(prompt, answer_tokens if directive.tokens is None else directive.tokens, at_most)


def _cut_at_stop(answer: Answer, stop: Sequence[str]) -> Answer:
    text = ""
    for number, piece in enumerate(answer.pieces, start=1):
        text += piece
        if any(text.removesuffix("\n").endswith(end) or text.endswith(end) for end in stop):
            return Answer(answer.pieces[:number], "stop_sequence", has_eos=False)
    return answer


def _cut_at_limit(answer: Answer, max_new_tokens: int) -> Answer:
    has_eos = len(answer.pieces) < max_new_tokens
    return Answer(answer.pieces[:max_new_tokens], "length", has_eos=has_eos)
