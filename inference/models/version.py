"""One pinned model."""

from decimal import Decimal
from typing import Any

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from inference.catalog import MOST_NAME_CHARACTERS
from inference.models.validators import validate_name


def _price(of_what: str) -> "models.DecimalField[Any, Any]":
    return models.DecimalField(
        max_digits=12,
        decimal_places=4,
        default=Decimal(0),
        validators=[MinValueValidator(0)],
        help_text=f"For a million tokens {of_what}, in the site's currency.",
    )


class ModelVersion(models.Model):
    """A model as its servers must run it. What is left empty is not checked, or as the server says."""

    name = models.CharField(max_length=MOST_NAME_CHARACTERS, unique=True, validators=[validate_name])
    model_id = models.CharField(
        "model", max_length=200, blank=True, help_text="The model that a server must say it serves, like Org/Name."
    )
    revision = models.CharField(
        max_length=100, blank=True, help_text="The revision that a server must say it serves; another is refused."
    )
    context_tokens = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Prompt and answer together; the server's own limit holds where it is smaller.",
    )
    max_answer_tokens = models.PositiveIntegerField(
        "answer tokens", null=True, blank=True, validators=[MinValueValidator(1)], help_text="The longest answer."
    )
    tokenizer = models.CharField(max_length=200, blank=True, help_text="Where it is not the model's own.")
    price_in = _price("read")
    price_cached = _price("read from the prefix cache")
    price_out = _price("written")
    has_tools = models.BooleanField("can call tools", default=False)
    has_vision = models.BooleanField("can see images", default=False)
    has_reasoning = models.BooleanField("thinks aloud", default=False)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="version_has_a_name"),
            models.CheckConstraint(
                condition=Q(price_in__gte=0, price_cached__gte=0, price_out__gte=0), name="prices_are_not_negative"
            ),
            models.CheckConstraint(condition=Q(context_tokens__gte=1), name="version_has_a_window"),
            models.CheckConstraint(condition=Q(max_answer_tokens__gte=1), name="version_may_answer"),
        ]

    def __str__(self) -> str:
        return self.name
