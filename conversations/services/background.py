"""What is done in the background once an answer has ended: who asks for errands, who settles them, what is swept."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import batched
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from conversations.context.epochs import is_long
from conversations.context.record import record_in
from conversations.models import Conversation, Errand, Generation, Message
from conversations.models.generation import GenerationQuerySet
from conversations.services import errands, summaries, titles
from conversations.services.errands import MOST_FAILURES
from foundation.ids import earliest_id, made_at_seconds
from foundation.redis import REDIS_UNREACHABLE, key, shared_client

log = structlog.get_logger(__name__)

_NEGLECTED_SECONDS = 3600
"""How far back answers are looked for of which nobody has told."""
_MEANWHILE_SECONDS = 60
"""So old answers and errands are that nobody has in hand any more."""
_UNSETTLED_SECONDS = 3600
"""How long after its deadline a text that cannot be settled is kept."""
_FORGOTTEN_SECONDS = 20
_SWEEP_COUNT = 500
_MOST_NEGLECTED = 1000

_REQUEUE = """
WITH lost AS (
  SELECT id FROM conversations_errand
  WHERE status = 'running' AND lease_expires_at < now() LIMIT %(count)s FOR UPDATE SKIP LOCKED
), ended AS (
  UPDATE conversations_errand errand SET
    failures = failures + 1, lease_expires_at = NULL, enqueued_at = now(),
    status = CASE WHEN failures + 1 < %(most_failures)s THEN 'queued' ELSE 'failed' END,
    prompt = CASE WHEN failures + 1 < %(most_failures)s THEN prompt ELSE '[]' END
  FROM lost WHERE errand.id = lost.id
  RETURNING errand.id, errand.status
), forgotten AS (
  UPDATE conversations_errand SET enqueued_at = now()
  WHERE id IN (
    SELECT id FROM conversations_errand
    WHERE status = 'queued' AND enqueued_at < now() - make_interval(secs => %(forgotten)s)
    ORDER BY enqueued_at LIMIT %(count)s FOR UPDATE SKIP LOCKED)
  RETURNING id
)
SELECT id FROM ended WHERE status = 'queued' UNION ALL SELECT id FROM forgotten
"""


def look_after(generation_id: UUID) -> None:
    """Ask for what a complete answer gives rise to: a title, a summary. May be called any number of times."""
    found = Generation.objects.select_related("message__parent", "conversation").filter(pk=generation_id)
    generation = found.filter(status=Message.Status.COMPLETE).first()
    if generation is not None:
        titles.ask_for_title(generation)
        summaries.ask_for_summary(generation)
    _note_looked_after(generation_id)


def settle(errand_id: UUID) -> None:
    """Let an errand's kind have what was written, once; whoever comes later finds nothing to settle.

    A kind's `settle` runs in this transaction and says whether the text was of use; else the errand has failed. The
    conversation is locked first, as whoever deletes it does.
    """
    conversations = Conversation.objects.filter(errands=errand_id)
    with transaction.atomic():
        if conversations.select_for_update(of=("self",), no_key=True).first() is None:
            return
        written = Errand.objects.select_for_update(of=("self",)).select_related("conversation", "message__parent")
        errand = written.filter(pk=errand_id, status=Errand.Status.WRITTEN).first()
        if errand is None:
            return
        errand.status = Errand.Status.SETTLED if _settle(errand) else Errand.Status.FAILED
        errand.prompt, errand.text = [], ""
        errand.save(update_fields=["status", "prompt", "text"])
    log.info("errand_settled", errand_id=str(errand_id), kind=errand.kind, status=errand.status)


def _settle(errand: Errand) -> bool:
    match Errand.Kind(errand.kind):
        case Errand.Kind.TITLE:
            return titles.settle(errand)
        case Errand.Kind.SUMMARY:
            return summaries.settle(errand)


def sweep() -> list[UUID]:
    """Offer again what no worker holds, and give up what is too late; return what was written and never settled."""
    with connection.cursor() as cursor:
        numbers = {"count": _SWEEP_COUNT, "forgotten": _FORGOTTEN_SECONDS, "most_failures": MOST_FAILURES}
        cursor.execute(_REQUEUE, numbers)
        lost = [errand_id for (errand_id,) in cursor.fetchall()]
    errands.offer(list(Errand.objects.filter(pk__in=lost)))
    _give_up(Errand.Status.QUEUED, late_seconds=_MEANWHILE_SECONDS)
    _give_up(Errand.Status.WRITTEN, late_seconds=_UNSETTLED_SECONDS)
    unsettled = Errand.objects.filter(
        status=Errand.Status.WRITTEN, enqueued_at__lt=timezone.now() - timedelta(seconds=_FORGOTTEN_SECONDS)
    )
    return list(unsettled.order_by("enqueued_at").values_list("pk", flat=True)[:_SWEEP_COUNT])


def _give_up(status: Errand.Status, *, late_seconds: int) -> None:
    """Fail what nobody takes, or what cannot be settled, long after its deadline."""
    late = timezone.now() - timedelta(seconds=late_seconds)
    count = Errand.objects.filter(status=status, deadline__lt=late).update(
        status=Errand.Status.FAILED, prompt=[], text=""
    )
    if count:
        log.warning("errands_given_up", count=count, were=status)


def neglected() -> list[UUID]:
    """Return answers that ended within the last hour or so and that nobody has looked after: the broker was away.

    Redis knows which were. Once it has lost that, they are all looked after again, which changes nothing.
    """
    now = timezone.now()
    ended = Generation.objects.filter(
        pk__gte=earliest_id(now.timestamp() - _NEGLECTED_SECONDS),
        status=Message.Status.COMPLETE,
        finished_at__lt=now - timedelta(seconds=_MEANWHILE_SECONDS),
    )
    found: list[UUID] = []
    for some in batched(_of_use(ended), _SWEEP_COUNT, strict=False):
        found += _not_looked_after(some)
        if len(found) >= _MOST_NEGLECTED:
            break
    return found[:_MOST_NEGLECTED]


def _of_use(ended: GenerationQuerySet) -> Iterator[UUID]:
    """Give those answers, the oldest first, at which a look can be of use: as `ReplyWriter` tells of no others."""
    errand = Errand.objects.filter(kind=Errand.Kind.TITLE, conversation=OuterRef("conversation"))
    is_named = Q(conversation__is_title_chosen=True) | Q(conversation__temporary=True) | Exists(errand)
    rows = ended.annotate(tokens=F("message__tokens_in") + F("message__tokens_out"), is_named=is_named).order_by("pk")
    for pk, context, tokens, has_name in rows.values_list("pk", "context", "tokens", "is_named").iterator():
        if not has_name or is_long(record_in(context), tokens or 0):
            yield pk


def _not_looked_after(generation_ids: Sequence[UUID]) -> list[UUID]:
    pipeline = shared_client().pipeline(transaction=False)
    for each in generation_ids:
        pipeline.sismember(_looked_after_key(each), str(each))
    try:
        return [each for each, is_noted in zip(generation_ids, pipeline.execute(), strict=True) if not is_noted]
    except REDIS_UNREACHABLE:
        return []


def _note_looked_after(generation_id: UUID) -> None:
    name = _looked_after_key(generation_id)
    try:
        pipeline = shared_client().pipeline(transaction=False)
        pipeline.sadd(name, str(generation_id))
        pipeline.expire(name, 3 * _NEGLECTED_SECONDS)
        pipeline.execute()
    except REDIS_UNREACHABLE as error:
        log.warning("not_noted_as_looked_after", error=type(error).__name__)


def _looked_after_key(generation_id: UUID) -> str:
    """Return the set of answers of about the same time that were looked after."""
    return key(1, "looked-after", int(made_at_seconds(generation_id)) // _NEGLECTED_SECONDS)
