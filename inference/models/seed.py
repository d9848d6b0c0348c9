"""What the settings said last."""

from django.db import models
from django.db.models import Q


class SeededFleet(models.Model):
    """The one row that remembers which `MODEL_FLEET` and `DEFAULT_MODEL` were applied last."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    fleet = models.TextField(blank=True)
    default_alias = models.TextField(blank=True)
    applied_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_seeded_fleet")]

    def __str__(self) -> str:
        return self.fleet
