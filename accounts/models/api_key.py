"""Keys of programs."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from accounts.models.user import User
from foundation.ids import new_id

MAX_NAME_CHARACTERS = 100
SCOPES = ("chat", "read", "write", "account")


class APIKey(models.Model):
    """A key `ck_…`, kept as the SHA-256 of its secret: it has 256 random bits, so nothing slower is needed."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=MAX_NAME_CHARACTERS, blank=True)
    prefix = models.CharField(max_length=12, help_text="The key's first characters, to recognise it by.")
    digest = models.BinaryField(max_length=32, unique=True)
    scopes = ArrayField(models.CharField(max_length=16))
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "API key"
        indexes = [models.Index(fields=["user", "-id"], name="api_key_by_user")]

    def __str__(self) -> str:
        return f"{self.prefix}…"

    def is_usable(self) -> bool:
        """Say whether the key has been neither revoked nor outlived."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())
