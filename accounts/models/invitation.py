"""Who may sign up where not everybody may."""

from django.db import models
from django.utils import timezone

from accounts.models.tier import Tier
from accounts.models.user import User
from foundation.ids import new_id


class Invitation(models.Model):
    """An address that may sign up. The link's secret is kept as its SHA-256."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    email = models.EmailField()
    tier = models.ForeignKey(Tier, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    invited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    by_mail = models.BooleanField(default=False, db_default=False, help_text="Whether the link is sent to the address.")
    mailed_at = models.DateTimeField(null=True, blank=True, help_text="When the link was sent.")

    def __str__(self) -> str:
        return self.email
