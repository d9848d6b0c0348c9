"""One model server."""

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from inference.catalog import MOST_PERMITS, MOST_REPLICA_WEIGHT, MOST_URL_CHARACTERS, ServerKind
from inference.models.validators import validate_address
from inference.models.version import ModelVersion

KINDS = [(ServerKind.TGI.value, "TGI"), (ServerKind.OPENAI_COMPATIBLE.value, "OpenAI-compatible")]


class Replica(models.Model):
    """A server that runs a version. One address may serve several versions, and is then one server to all of them."""

    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="replicas")
    url = models.CharField(
        "address", max_length=MOST_URL_CHARACTERS, validators=[validate_address], help_text="Like http://host:port."
    )
    kind = models.CharField(max_length=16, choices=KINDS, default=ServerKind.TGI.value)
    weight = models.FloatField(
        default=1.0,
        validators=[MinValueValidator(0), MaxValueValidator(MOST_REPLICA_WEIGHT)],
        help_text="Its strength beside the other replicas: one of 2 carries twice the load of one of 1.",
    )
    permits = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_PERMITS)],
        help_text="How many requests it is given at once, by all workers together; left empty, as many as it takes.",
    )
    is_draining = models.BooleanField(
        "draining", default=False, help_text="It gets no new request; those that it has come to their end."
    )

    class Meta:
        ordering = ("pk",)
        constraints = [
            models.UniqueConstraint(fields=["version", "url"], name="one_replica_per_address"),
            models.CheckConstraint(
                condition=(Q(url__startswith="http://") | Q(url__startswith="https://")) & ~Q(url__endswith="/"),
                name="replica_has_an_address",
            ),
            models.CheckConstraint(condition=Q(kind__in=[kind for kind, _ in KINDS]), name="replica_speaks_a_protocol"),
            # The upper bound also keeps out NaN, which PostgreSQL takes for more than any number.
            models.CheckConstraint(
                condition=Q(weight__gte=0, weight__lte=MOST_REPLICA_WEIGHT), name="replica_weight_in_range"
            ),
            models.CheckConstraint(condition=Q(permits__gte=1, permits__lte=MOST_PERMITS), name="replica_has_permits"),
        ]

    def __str__(self) -> str:
        return self.url

    def clean_fields(self, exclude: "set[str] | None" = None) -> None:  # type: ignore[override]
        self.url = self.url.strip().rstrip("/")
        super().clean_fields(exclude)

    def clean(self) -> None:
        super().clean()
        others = Replica.objects.filter(url=self.url).exclude(pk=self.pk).exclude(kind=self.kind)
        if other := others.select_related("version").first():
            raise ValidationError(
                {"kind": f"The same server is {other.get_kind_display()} for {other.version}."}, code="kind"
            )
