"""What was counted while Redis was away, brought into the counts that Redis kept."""

from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from accounts.models import TokenReservation
from accounts.quotas import ledger, windows


def count_again() -> None:
    """Count them; however often this is done, each counts once."""
    age = ExpressionWrapper(Now() - F("created_at"), output_field=DurationField())
    missed = list(ledger.uncounted().annotate(age=age))
    reserved = TokenReservation.objects.filter(pk__in=[each.pk for each in missed])
    under_way = dict(reserved.values_list("pk", "tokens"))
    for each in missed:
        age_ms = ledger.milliseconds(each.age)
        windows.add(each.user_id, each.pool, each.pk, age_ms=age_ms, tokens_under_way=under_way.get(each.pk))
