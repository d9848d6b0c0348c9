"""What is counted and traced of a reply: its wait, its first token, its end."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import redis.asyncio
from opentelemetry.context import Context
from opentelemetry.trace import Span

from conversations.models import Message
from conversations.services.attempts import Attempt
from conversations.services.outcomes import Outcome
from foundation.ids import made_at_seconds
from inference import metrics, tracing
from inference.jobs import Job

_TRACED_OPTIONS = ("max_tokens", "temperature", "top_p", "seed")
"""Not `stop`: its strings are somebody's words."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One attempt at a reply, as monitors see it."""

    attempt: Attempt
    priority_class: str
    span: Span

    def ended(self, outcome: Outcome, *, version: str) -> None:
        """Count and trace how the answer ended; `version` is the catalogue's name, empty where none was asked."""
        model = self.attempt.model
        metrics.ANSWERS.labels(model, version, outcome.finish_reason).inc()
        metrics.TOKENS.labels(model, version, "in").inc(outcome.tokens_in)
        metrics.TOKENS.labels(model, version, "cached").inc(outcome.tokens_cached)
        metrics.TOKENS.labels(model, version, "out").inc(outcome.tokens_out)
        if outcome.status == Message.Status.CANCELLED:
            metrics.CANCELS.labels("running").inc()
        if outcome.first_token_at is not None:
            waited_seconds = outcome.first_token_at.timestamp() - made_at_seconds(self.attempt.generation_id)
            metrics.TIME_TO_FIRST_TOKEN.labels(model, version, self.priority_class).observe(max(0.0, waited_seconds))
        self._trace_the_end(outcome)

    def _trace_the_end(self, outcome: Outcome) -> None:
        self.span.set_attributes(
            {
                "gen_ai.response.model": outcome.model_version,
                "gen_ai.response.finish_reasons": [outcome.finish_reason],
                "gen_ai.usage.input_tokens": outcome.tokens_in,
                "gen_ai.usage.cache_read.input_tokens": outcome.tokens_cached,
                "gen_ai.usage.output_tokens": outcome.tokens_out,
            }
        )
        if outcome.first_token_at is not None:
            self.span.add_event("first token", timestamp=int(outcome.first_token_at.timestamp() * 1e9))
        if outcome.error_code:
            tracing.failed(self.span, outcome.error_code)


@asynccontextmanager
async def observed(client: "redis.asyncio.Redis", job: Job, attempt: Attempt) -> AsyncIterator[Observation]:
    """Count and trace one attempt while the block lasts."""
    context = await tracing.carried(client, attempt.generation_id)
    if attempt.number == 1:
        _note_the_wait(job, attempt, context)
    else:
        metrics.RESUMED.labels(attempt.model).inc()
    with metrics.ANSWERS_UNDER_WAY.track_inprogress(), tracing.chat(attempt.model, context, _asked(attempt)) as span:
        yield Observation(attempt, job.priority_class, span)


def _note_the_wait(job: Job, attempt: Attempt, context: Context | None) -> None:
    accepted_seconds = made_at_seconds(attempt.generation_id)
    waited_seconds = max(0.0, time.time() - accepted_seconds)
    metrics.QUEUE_WAIT.labels(attempt.model, job.priority_class).observe(waited_seconds)
    tracing.waited(attempt.model, context, accepted_seconds)


def _asked(attempt: Attempt) -> tracing.Attributes:
    options = {name: attempt.options.get(name) for name in _TRACED_OPTIONS}
    return {
        "gen_ai.request.model": attempt.model,
        "gen_ai.conversation.id": str(attempt.conversation_id),
        "chat.generation.id": str(attempt.generation_id),
        "chat.attempt": attempt.number,
        **{f"gen_ai.request.{name}": value for name, value in options.items() if value is not None},
    }
