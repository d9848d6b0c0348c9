"""Rolling summaries: when the next epoch of a conversation is due, and how what a model wrote becomes one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from django.db import transaction
from django.db.models import F

from conversations.context import epochs, restating
from conversations.context.epochs import Measured
from conversations.context.record import Record, record_in
from conversations.context.summaries import prompt_for_points, prompt_to_condense
from conversations.models import Conversation, Errand, Generation, Message, Summary
from conversations.models_on_offer import background_alias, window_tokens
from conversations.services import errands
from conversations.services.uncovered import Uncovered, read_said, read_uncovered
from inference.exceptions import UnknownModel

_POINTS_TOKENS = 600
_MOST_PROMPT_BYTES = 8_000
_LEAST_PROMPT_BYTES = 1_000
_BYTES_PER_TOKEN = 2
"""Few texts have less, so what is shown of the messages fits into the window of the model that restates them."""
_UNDER_WAY = (Errand.Status.QUEUED, Errand.Status.RUNNING, Errand.Status.WRITTEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """What an errand's text is to become: ids and numbers, nobody's words.

    `after` is the summary whose text the new one continues, or replaces if it `condenses`.
    """

    made_for: UUID
    messages: tuple[UUID, ...]
    after: UUID | None
    condenses: bool
    share_tokens: int

    def as_json(self) -> dict[str, Any]:
        """Return what is stored with the errand."""
        return {
            "made_for": str(self.made_for),
            "messages": [str(each) for each in self.messages],
            "after": str(self.after) if self.after else None,
            "condenses": self.condenses,
            "share_tokens": self.share_tokens,
        }

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Self:
        """Return what was stored with an errand."""
        return cls(
            made_for=UUID(stored["made_for"]),
            messages=tuple(map(UUID, stored["messages"])),
            after=UUID(stored["after"]) if stored["after"] else None,
            condenses=stored["condenses"],
            share_tokens=stored["share_tokens"],
        )


def ask_for_summary(generation: Generation) -> Errand | None:
    """Have the next epoch written if one is due after this answer; return its errand, `None` where none is new."""
    record = record_in(generation.context)
    message = generation.message
    tokens = (message.tokens_in or (record.total_tokens if record else 0)) + (message.tokens_out or 0)
    if record is None or record.budget_tokens is None or not epochs.is_long(record, tokens):
        return None
    uncovered = read_uncovered(
        conversation_id=generation.conversation_id, tip=generation.pk, tokenizer=record.tokenizer
    )
    if uncovered.before is None:
        uncovered = Uncovered(epochs.after_head(uncovered.messages, record.budget_tokens), None)
    epoch = _epoch_due(generation, record, record.budget_tokens, uncovered)
    return _request(generation.conversation, epoch, uncovered.before) if epoch else None


def settle(errand: Errand) -> bool:
    """Make a summary of what was written; say whether the text could be taken. The conversation is locked.

    Nothing is made, and nothing refused, where the messages are gone, or have this epoch already.
    """
    epoch = Epoch.read(errand.details)
    ends = {epoch.made_for, errand.message_id}
    before = Summary.objects.filter(pk=epoch.after).first() if epoch.after else None
    if Message.objects.filter(pk__in=ends).count() < len(ends) or (epoch.after and before is None):
        return True
    text = _text_of(errand, epoch, before)
    if text is None:
        return False
    _keep(errand, epoch, before, text)
    # After a long time without background work more than one epoch is due.
    transaction.on_commit(lambda: _look_again(errand.conversation_id), robust=True)
    return True


def _look_again(conversation_id: UUID) -> None:
    complete = Generation.objects.filter(conversation_id=conversation_id, status=Message.Status.COMPLETE)
    newest = complete.select_related("conversation").order_by("-message_id").first()
    if newest is not None:
        ask_for_summary(newest)


def _epoch_due(generation: Generation, record: Record, budget_tokens: int, uncovered: Uncovered) -> Epoch | None:
    asked = _asked_before(uncovered.messages)
    if any(errand.status in _UNDER_WAY for errand in asked):
        return None
    share = epochs.summary_share(budget_tokens)
    failed = {errand.message_id for errand in asked if errand.requests >= errands.MOST_REQUESTS}
    condenses = _is_to_condense(uncovered.before, share, has_failed=bool(failed))
    covered = epochs.next_epoch(
        uncovered.messages,
        budget_tokens=budget_tokens,
        kept_from=record.tail_from,
        failed=failed,
        # One exchange with it: what a small model does not shorten, it does not read to the end either.
        most_bytes=0 if condenses else _most_prompt_bytes(0),
    )
    if not covered:
        return None
    return Epoch(
        made_for=generation.pk,
        messages=tuple(message.message_id for message in covered),
        after=uncovered.before.pk if uncovered.before else None,
        condenses=condenses,
        share_tokens=share,
    )


def _asked_before(messages: Sequence[Measured]) -> list[Errand]:
    """Return the errands for these messages that are not settled."""
    found = Errand.objects.filter(kind=Errand.Kind.SUMMARY, message__in=[each.message_id for each in messages])
    return list(found.exclude(status=Errand.Status.SETTLED).only("message_id", "status", "requests"))


def _is_to_condense(before: Summary | None, share_tokens: int, *, has_failed: bool) -> bool:
    """Whether the next epoch is the whole anew and shorter. Where that has failed, the text may grow on for a while."""
    if before is None:
        return False
    return restating.tokens_of(before.text) > share_tokens * (2 if has_failed else 1)


def _most_prompt_bytes(notes_tokens: int) -> int:
    """Return how many bytes of messages may be shown to the model, beside notes of so many tokens."""
    try:
        window = window_tokens()(background_alias())
    except UnknownModel:
        window = None
    if window is None:
        return _MOST_PROMPT_BYTES
    room = (window - _POINTS_TOKENS - restating.RULES_TOKENS - 2 * notes_tokens) * _BYTES_PER_TOKEN
    return max(_LEAST_PROMPT_BYTES, min(_MOST_PROMPT_BYTES, room))


def _request(conversation: Conversation, epoch: Epoch, before: Summary | None) -> Errand | None:
    said = read_said(conversation.pk, epoch.messages)
    most_bytes = _most_prompt_bytes(epoch.share_tokens if epoch.condenses else 0)
    if epoch.condenses and before:
        prompt, max_tokens = prompt_to_condense(said, before.text, most_bytes=most_bytes), epoch.share_tokens
    else:
        prompt, max_tokens = prompt_for_points(said, most_bytes=most_bytes), _POINTS_TOKENS
    return errands.request(
        Errand.Kind.SUMMARY,
        conversation=conversation,
        message_id=epoch.messages[-1],
        prompt=prompt,
        max_tokens=max_tokens,
        details=epoch.as_json(),
    )


def _text_of(errand: Errand, epoch: Epoch, before: Summary | None) -> str | None:
    said = read_said(errand.conversation_id, epoch.messages)
    if epoch.condenses and before:
        return restating.condensed(before.text, errand.text, said, share_tokens=epoch.share_tokens)
    return restating.continued(before.text if before else "", errand.text, said)


def _keep(errand: Errand, epoch: Epoch, before: Summary | None, text: str) -> None:
    _, is_new = Summary.objects.get_or_create(
        covers_up_to_id=errand.message_id,
        defaults={
            "conversation_id": errand.conversation_id,
            "made_for_id": epoch.made_for,
            "epoch": before.epoch + 1 if before else 1,
            "text": text,
            "model": errand.model,
        },
    )
    if is_new:
        Conversation.objects.filter(pk=errand.conversation_id).update(context_version=F("context_version") + 1)
