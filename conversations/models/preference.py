"""What a user wants of every conversation."""

from django.conf import settings
from django.db import models


class Preference(models.Model):
    """A user's standing instructions, and whether memories are used. Who has no row has set nothing."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="preference"
    )
    instructions = models.TextField(blank=True, help_text="Standing instructions, for every conversation.")
    uses_memories = models.BooleanField(default=True, help_text="Whether memories are read and written.")

    def __str__(self) -> str:
        return str(self.user_id)
