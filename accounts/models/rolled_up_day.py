"""Which days' roll-ups are final."""

from django.db import models
from django.utils import timezone


class RolledUpDay(models.Model):
    """A UTC day that had ended, with nothing under way of it, before it was rolled up: its roll-up is all there is."""

    day = models.DateField(primary_key=True)
    rolled_up_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return str(self.day)
