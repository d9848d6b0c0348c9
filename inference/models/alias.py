"""What users choose."""

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models, transaction
from django.db.models import F, Q

from inference.catalog import AUTO, MOST_NAME_CHARACTERS
from inference.models.validators import validate_name
from inference.models.version import ModelVersion

MOST_WEIGHT = 1_000_000


class ModelAlias(models.Model):
    """A model as users know it: shares of one or more versions.

    Where one is called `auto`, it answers whoever chose none; where none is, the default does.
    """

    name = models.CharField(
        max_length=MOST_NAME_CHARACTERS,
        unique=True,
        validators=[validate_name],
        help_text=f"What users choose. One that is called {AUTO} answers whoever chose none, instead of the default.",
    )
    position = models.PositiveSmallIntegerField(default=0, help_text="Its place in the list of models.")
    is_default = models.BooleanField("default", default=False, editable=False)
    fallback = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="A smaller model that may answer in its place while there is more to do than can be done.",
    )
    versions = models.ManyToManyField(ModelVersion, through="VersionWeight", related_name="aliases")

    class Meta:
        ordering = ("position", "pk")
        verbose_name = "model"
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="alias_has_a_name"),
            models.CheckConstraint(condition=~Q(fallback=F("id")), name="alias_does_not_replace_itself"),
            models.UniqueConstraint(fields=["is_default"], condition=Q(is_default=True), name="one_default_alias"),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        super().clean()
        passed: set[int | None] = {self.pk} if self.pk else set()
        step = self.fallback
        while step is not None:
            if step.pk in passed:
                raise ValidationError({"fallback": f"{step} would end up being replaced by itself."}, code="cycle")
            passed.add(step.pk)
            step = step.fallback

    def make_default(self) -> None:
        """Let it answer whoever chose no model."""
        with transaction.atomic():
            ModelAlias.objects.filter(is_default=True).exclude(pk=self.pk).update(is_default=False)
            self.is_default = True
            self.save(update_fields=["is_default"])


class VersionWeight(models.Model):
    """Which share of an alias's conversations a version gets, relative to the other versions."""

    alias = models.ForeignKey(ModelAlias, on_delete=models.CASCADE, related_name="shares")
    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="shares")
    weight = models.PositiveIntegerField(
        default=100,
        validators=[MaxValueValidator(MOST_WEIGHT)],
        help_text="Relative to the other versions; 0 gets no conversation while another version is there.",
    )

    class Meta:
        ordering = ("-weight", "pk")
        verbose_name = "share"
        constraints = [
            models.UniqueConstraint(fields=["alias", "version"], name="one_share_per_version"),
            models.CheckConstraint(condition=Q(weight__gte=0, weight__lte=MOST_WEIGHT), name="share_is_in_range"),
        ]

    def __str__(self) -> str:
        return f"{self.version} in {self.alias}"
