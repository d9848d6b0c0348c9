"""What a kind of account may use, as data."""

from decimal import Decimal

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

PRIORITY_CLASSES = [("enterprise", "Enterprise"), ("plus", "Plus"), ("free", "Free")]


class Tier(models.Model):
    """A tier: its limits, its place in the queue, its price. A site starts with `free`, `plus` and `enterprise`.

    A limit that is left empty does not hold, but that of memories, documents and their sizes: there the site's does.
    """

    name = models.SlugField(primary_key=True)
    description = models.TextField(blank=True, db_default="", default="", help_text="Shown to who may choose it.")
    priority_class = models.CharField(max_length=16, choices=PRIORITY_CLASSES, default="free")
    requests_per_window = models.PositiveIntegerField(help_text="Messages that may be sent within one window.")
    window_seconds = models.PositiveIntegerField(default=3 * 3600, validators=[MinValueValidator(1)])
    tokens_per_minute = models.PositiveIntegerField(null=True, blank=True)
    tokens_per_day = models.PositiveBigIntegerField(null=True, blank=True, help_text="Days are those of UTC.")
    concurrent_generations = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="Answers that may be under way at once."
    )
    allowed_models = ArrayField(
        models.CharField(max_length=100),
        blank=True,
        default=list,
        db_default=[],
        help_text="The names of the models that may be chosen, comma-separated; empty: all.",
    )
    max_answer_tokens = models.PositiveIntegerField(default=1024, validators=[MinValueValidator(1)])
    most_memories = models.PositiveIntegerField(null=True, blank=True)
    most_memory_tokens = models.PositiveIntegerField(null=True, blank=True)
    most_documents = models.PositiveIntegerField(null=True, blank=True)
    most_document_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    uses_answer_cache = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether first messages may be answered from the answer cache, where the site has one.",
    )
    is_offered = models.BooleanField(
        default=False, db_default=False, help_text="Whether people may choose it for themselves."
    )
    monthly_price = models.DecimalField(
        max_digits=12, decimal_places=2, default=Decimal(0), db_default=Decimal(0), validators=[MinValueValidator(0)]
    )
    bills_overage = models.BooleanField(
        default=False, db_default=False, help_text="Whether usage beyond what the price includes is billed."
    )
    included_usage = models.DecimalField(
        max_digits=12,
        decimal_places=2,
        default=Decimal(0),
        db_default=Decimal(0),
        validators=[MinValueValidator(0)],
        help_text="How much usage, at the models' prices, a month's price includes.",
    )
    stripe_price_id = models.CharField(max_length=255, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(window_seconds__gt=0), name="tier_window_has_a_length"),
            models.CheckConstraint(
                condition=Q(monthly_price__gte=0, included_usage__gte=0), name="tier_prices_are_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def allows_model(self, model: str) -> bool:
        """Say whether users of this tier may choose a model, by its alias's name."""
        return not self.allowed_models or model in self.allowed_models


class ModelLimit(models.Model):
    """What a tier keeps for one model: the others cannot use it up, and that model uses up nothing of theirs.

    Without `tokens_per_day` the model's tokens have no daily limit; the tier's does not count them either.
    """

    tier = models.ForeignKey(Tier, on_delete=models.CASCADE, related_name="model_limits")
    model = models.CharField(max_length=100, help_text="The model's name, as users choose it.")
    requests_per_window = models.PositiveIntegerField()
    tokens_per_day = models.PositiveBigIntegerField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tier", "model"], name="one_limit_per_tier_and_model")]

    def __str__(self) -> str:
        return f"{self.tier_id}: {self.model}"
