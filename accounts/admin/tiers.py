"""Tiers in the admin: their limits and prices, checked before they count, from the next request on."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Count, QuerySet
from django.http import HttpRequest

from accounts import invitations, known_models
from accounts.models import Invitation, ModelLimit, PlanSpan, Subscription, Tier
from foundation.audited_admin import AuditedAdmin

_AT_LEAST_ONE = (
    "requests_per_window", "window_seconds", "tokens_per_minute", "tokens_per_day", "concurrent_generations",
    "max_answer_tokens", "most_memory_tokens", "most_document_bytes",
)  # fmt: skip
"""Limits of which zero would say that nothing works at all; a tier may well have no memories and no documents."""


class TierForm(forms.ModelForm):  # type: ignore[type-arg]
    """A tier with which one can work: its limits leave room for something, and its models exist."""

    def clean_allowed_models(self) -> list[str]:
        names: list[str] = self.cleaned_data["allowed_models"] or []
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValidationError(f"Named twice: {', '.join(repeated)}.", code="repeated")
        _check_models_exist(names)
        return names

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for name in _AT_LEAST_ONE:
            value = cleaned.get(name)
            if value is not None and value < 1:
                self.add_error(name, "This must be 1 or more." + (" Empty: no limit." if _may_be_empty(name) else ""))
        self._check_fits_together(cleaned)
        return cleaned

    def _check_fits_together(self, cleaned: Mapping[str, Any]) -> None:
        a_day, an_answer = cleaned.get("tokens_per_day"), cleaned.get("max_answer_tokens")
        if a_day and an_answer and an_answer >= a_day:
            self.add_error("max_answer_tokens", "One answer could use up more than the day's tokens.")
        a_minute = cleaned.get("tokens_per_minute")
        if a_minute and an_answer and an_answer >= a_minute:
            self.add_error("max_answer_tokens", "One answer could use up more than the minute's tokens.")
        if cleaned.get("included_usage") and not cleaned.get("bills_overage"):
            self.add_error("included_usage", "Usage is included only where what goes beyond it is billed.")


class ModelLimitForm(forms.ModelForm):  # type: ignore[type-arg]
    """What is kept for one model that exists."""

    class Meta:
        help_texts: ClassVar[dict[str, str]] = {
            "tokens_per_day": "Empty: no limit for this model, for the tier's own does not count its tokens."
        }

    def clean_model(self) -> str:
        name: str = self.cleaned_data["model"]
        _check_models_exist([name])
        return name

    def clean_requests_per_window(self) -> int:
        return _at_least_one(self.cleaned_data["requests_per_window"])

    def clean_tokens_per_day(self) -> int | None:
        tokens: int | None = self.cleaned_data["tokens_per_day"]
        return None if tokens is None else _at_least_one(tokens)


class ModelLimitInline(admin.TabularInline):  # type: ignore[type-arg]
    """Models with a window, and perhaps a day's tokens, of their own."""

    model = ModelLimit
    form = ModelLimitForm
    extra = 1
    verbose_name_plural = "kept for single models, instead of the limits that all models share"


@admin.register(Tier)
class TierAdmin(AuditedAdmin):
    """A tier keeps its name: accounts, plans and invoices are on it by that. One that is used is not deleted."""

    form = TierForm
    inlines = (ModelLimitInline,)
    list_display = (
        "name", "priority_class", "requests_per_window", "window_seconds", "tokens_per_minute", "tokens_per_day",
        "concurrent_generations", "monthly_price", "is_offered", "accounts",
    )  # fmt: skip
    fieldsets = (
        (None, {"fields": ("name", "description", "is_offered", "priority_class")}),
        (
            "Requests and tokens",
            {
                "fields": (
                    ("requests_per_window", "window_seconds"),
                    ("tokens_per_minute", "tokens_per_day"),
                    "concurrent_generations",
                ),
                "description": "An empty limit does not hold. What is changed here counts from the next request on,"
                " what is kept for single models within five seconds.",
            },
        ),
        ("Answers", {"fields": ("allowed_models", "max_answer_tokens", "uses_answer_cache")}),
        (
            "Memories and documents",
            {
                "fields": (("most_memories", "most_memory_tokens"), ("most_documents", "most_document_bytes")),
                "description": "Empty: as the site has it for everybody.",
            },
        ),
        ("Price", {"fields": ("monthly_price", ("bills_overage", "included_usage"), "stripe_price_id")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tier]:
        tiers: QuerySet[Tier] = super().get_queryset(request)
        return tiers.annotate(account_count=Count("users"))

    def get_readonly_fields(self, request: HttpRequest, obj: Tier | None = None) -> tuple[str, ...]:
        return () if obj is None else ("name",)

    def has_delete_permission(self, request: HttpRequest, obj: Tier | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or obj.pk != settings.DEFAULT_TIER)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        # Spent invitations go with their tier; what Django says of anything else in the way is less clear than this.
        deleted, counts, lacking, _ = super().get_deleted_objects(objs, request)
        in_the_way = [sentence for tier in objs for sentence in _uses_of(tier)]
        return deleted, counts, set() if in_the_way else lacking - {Invitation._meta.verbose_name}, in_the_way

    @admin.display(ordering="account_count")
    def accounts(self, tier: Any) -> int:
        return int(tier.account_count)


def _check_models_exist(names: list[str]) -> None:
    if unknown := known_models.unknown_among(names):
        there_are = ", ".join(known_models.all_names())
        raise ValidationError(f"There is no model {', '.join(unknown)}; there are {there_are}.", code="unknown_model")


def _uses_of(tier: Tier) -> list[str]:
    """Say for what a tier is needed."""
    counts = {
        "accounts": tier.users.count(),
        "plans": Subscription.objects.filter(tier=tier).count(),
        "stretches of plans, which invoices tell of": PlanSpan.objects.filter(tier=tier).count(),
        "invitations": invitations.good().filter(tier=tier).count(),
    }
    default = [f"{tier} is the tier of new accounts."] if tier.pk == settings.DEFAULT_TIER else []
    return [*default, *(f"On {tier} there are {what}: {count}." for what, count in counts.items() if count)]


def _at_least_one(number: int) -> int:
    if number < 1:
        raise ValidationError("This must be 1 or more.", code="too_small")
    return number


def _may_be_empty(name: str) -> bool:
    return bool(Tier._meta.get_field(name).null)
