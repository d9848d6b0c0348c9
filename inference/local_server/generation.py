"""One answer: the checked request, the wait for a seat, the tokens, and the reason why it ends."""

import re
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from inference.local_server.engine import Engine
from inference.local_server.errors import IncompleteError
from inference.local_server.grammar import engine_grammar
from inference.local_server.load import Load
from inference.local_server.local_models import SamplingDefaults
from inference.local_server.parameters import Parameters
from inference.local_server.sampling import Sampling, plan_sampling
from inference.local_server.tokens import Ending, EngineEvent, EngineStopped, FinishReason, PromptRead, Step, Token
from inference.local_server.validation import Limits, check_lengths, check_parameters

_STOP_WINDOW_CHARACTERS = 300
_STOP_KEPT_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Job:
    """A request that passed every check. `max_new_tokens` is what it may really write."""

    prompt_ids: list[int]
    max_new_tokens: int
    stop: tuple[str, ...]
    sampling: Sampling
    top_n_tokens: int
    grammar: str | None


class Generator:
    """Checks and answers requests for one engine."""

    def __init__(self, engine: Engine, load: Load, limits: Limits, defaults: SamplingDefaults) -> None:
        self._engine = engine
        self._load = load
        self._limits = limits
        self._defaults = defaults

    async def prepare(self, inputs: str, parameters: Parameters, *, add_special: bool) -> Job:
        """Raises `InvalidInputError` by the first rule that the request breaks."""
        check_parameters(inputs, parameters, self._limits)
        pieces = await self._engine.tokenize(inputs, add_special=add_special)
        prompt_ids = [piece.id for piece in pieces]
        if parameters.truncate is not None:
            prompt_ids = prompt_ids[-parameters.truncate :]
        max_new_tokens = check_lengths(len(prompt_ids), parameters.max_new_tokens, self._limits)
        return Job(
            prompt_ids=prompt_ids,
            max_new_tokens=max_new_tokens,
            stop=parameters.stop,
            sampling=plan_sampling(parameters, self._defaults),
            top_n_tokens=parameters.top_n_tokens or 0,
            grammar=None if parameters.grammar is None else engine_grammar(parameters.grammar),
        )

    async def run(self, job: Job) -> AsyncGenerator[Step]:
        """The answer's tokens; the last step carries the ending. Closing it frees the seat."""
        arrived = time.monotonic()
        async with self._load.seat(len(job.prompt_ids) + job.max_new_tokens):
            answer = _Answer(job, arrived, time.monotonic())
            options = _engine_options(job)
            shows_alternatives = job.top_n_tokens > 0
            events = self._engine.complete(job.prompt_ids, options, with_alternatives=shows_alternatives)
            async with aclosing(events):
                async for event in events:
                    for step in answer.take(event):
                        yield step
                        if step.ending is not None:
                            return
        raise IncompleteError


class _Answer:
    """Decides, token by token, whether the answer is complete.

    A token that may be the last is kept until the engine says more; every other one goes out at once.
    """

    def __init__(self, job: Job, arrived: float, seated: float) -> None:
        self._job = job
        self._arrived = arrived
        self._seated = seated
        self._text: list[str] = []
        self._count = 0
        self._cached_tokens = 0
        self._kept: Token | None = None
        self._stop_rule = StopRule(job.stop)

    def take(self, event: EngineEvent) -> list[Step]:
        match event:
            case PromptRead():
                self._cached_tokens = event.cached_tokens
                return []
            case EngineStopped():
                return self._end(event)
            case Token():
                return self._advance(event)

    def _advance(self, token: Token) -> list[Step]:
        released = self._release()
        self._count += 1
        if token.special or self._count >= self._job.max_new_tokens:
            self._kept = token
            return released
        if self._stop_rule.is_met_by(token.text):
            return [*released, self._last(token, "stop_sequence")]
        return [*released, self._step(token)]

    def _release(self) -> list[Step]:
        """A kept token that was not the last after all."""
        kept, self._kept = self._kept, None
        if kept is None:
            return []
        self._stop_rule.is_met_by(kept.text)
        return [self._step(kept)]

    def _end(self, stopped: EngineStopped) -> list[Step]:
        steps = []
        for _ in range(stopped.lost_tokens):
            steps += self._release()
            self._count += 1
            self._kept = Token(0, "", None, special=False)
        if self._kept is None:
            raise IncompleteError
        at_limit = self._count >= self._job.max_new_tokens
        reason: FinishReason = "eos_token" if stopped.at_end_of_text and not at_limit else "length"
        return [*steps, self._last(self._kept, reason)]

    def _step(self, token: Token) -> Step:
        if not token.special:
            self._text.append(token.text)
        return Step(self._count, token)

    def _last(self, token: Token, reason: FinishReason) -> Step:
        if not token.special:
            self._text.append(token.text)
        ending = Ending(
            finish_reason=reason,
            generated_text="".join(self._text),
            generated_tokens=self._count,
            seed=self._job.sampling.seed,
            input_tokens=len(self._job.prompt_ids),
            cached_tokens=self._cached_tokens,
            queue_seconds=self._seated - self._arrived,
            inference_seconds=time.monotonic() - self._seated,
        )
        return Step(self._count, token, ending)


class StopRule:
    """TGI's rule: an answer stops when its text ends with a stop string at the end of a token.

    A line break after the stop string is forgiven, and only the last few hundred characters are looked at.
    """

    def __init__(self, stop: tuple[str, ...]) -> None:
        self._patterns = [re.compile(re.escape(text) + "$") for text in stop]
        self._tail = ""

    def is_met_by(self, text: str) -> bool:
        """Whether the answer stops once `text` is appended to it."""
        if not self._patterns:
            return False
        self._tail += text
        if len(self._tail) > _STOP_WINDOW_CHARACTERS:
            self._tail = self._tail[-_STOP_KEPT_CHARACTERS:]
        return any(pattern.search(self._tail) for pattern in self._patterns)


def _engine_options(job: Job) -> dict[str, object]:
    options = job.sampling.options | {"n_predict": job.max_new_tokens, "n_probs": max(job.top_n_tokens, 1)}
    return options if job.grammar is None else options | {"grammar": job.grammar}
