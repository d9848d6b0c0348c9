"""The erasure of an account, and its receipt."""

from django.db import models
from django.utils import timezone

from foundation.ids import new_id


class Erasure(models.Model):
    """An account that is to be erased, or has been. Of the person it holds the account's id, and that until it is done.

    `stores` lists each store with how many of its things were erased; `digest` is the SHA-256 of the receipt's secret.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user_id = models.UUIDField(null=True, unique=True)
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    stores = models.JSONField(default=list)
    attempts = models.PositiveIntegerField(default=0)
    requested_at = models.DateTimeField(default=timezone.now)
    mailed_at = models.DateTimeField(null=True, blank=True, help_text="When the receipt's link was sent.")
    completed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return str(self.id)
