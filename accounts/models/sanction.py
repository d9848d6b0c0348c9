"""What staff have done about an account's conduct."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models.user import User
from foundation.ids import new_id


class Sanction(models.Model):
    """A warning, or a suspension, of an account. A suspension without an end lasts until it is lifted."""

    class Kind(models.TextChoices):
        WARNING = "warning"
        SUSPENSION = "suspension"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sanctions")
    kind = models.CharField(max_length=16, choices=Kind)
    reason = models.TextField()
    imposed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    ends_at = models.DateTimeField(null=True, blank=True)
    lifted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = [models.Index(fields=["ends_at"], condition=Q(lifted_at=None), name="sanctions_to_end")]

    def __str__(self) -> str:
        return f"{self.kind}, {self.created_at:%Y-%m-%d}"
