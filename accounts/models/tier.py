"""What a kind of account may use, as data."""

from django.db import models

PRIORITY_CLASSES = [("enterprise", "Enterprise"), ("plus", "Plus"), ("free", "Free")]


class Tier(models.Model):
    """A tier: its limits, its place in the queue. A site starts with `free`, `plus` and `enterprise`."""

    name = models.SlugField(primary_key=True)
    priority_class = models.CharField(max_length=16, choices=PRIORITY_CLASSES, default="free")
    requests_per_window = models.PositiveIntegerField(help_text="Messages that may be sent within one window.")
    window_seconds = models.PositiveIntegerField(default=3 * 3600)
    max_answer_tokens = models.PositiveIntegerField(default=1024)
    uses_answer_cache = models.BooleanField(
        default=False,
        help_text="Whether first messages may be answered from the answer cache, where the site has one.",
    )

    def __str__(self) -> str:
        return self.name
