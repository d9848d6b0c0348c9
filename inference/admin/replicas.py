"""Model servers in the admin, one by one and as a fleet."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from foundation.audited_admin import AuditedAdmin, WhyForm, asks_why
from inference.draining import set_draining
from inference.fleet_overview import Reports, fleet_overview, replica_standing
from inference.fleet_reports import last_reports
from inference.models import Replica


@admin.register(Replica)
class ReplicaAdmin(AuditedAdmin):
    """A server's settings, beside what the workers last found out about it."""

    list_filter = ("version", "kind", "is_draining")
    list_select_related = ("version",)
    search_fields = ("url", "version__name")
    ordering = ("version__name", "pk")
    autocomplete_fields = ("version",)
    readonly_fields = ("state",)
    actions = ("drain", "undrain")

    class Media:
        css = {"all": ("css/admin/fleet.css",)}

    def get_list_display(self, request: HttpRequest) -> list[str | Callable[[Replica], str | bool]]:
        # Read once for the whole list; the admin gives its columns no request to keep it in.
        return ["url", "version", _state_column(last_reports()), "kind", "weight", "permits"]

    @admin.display(description="State")
    def state(self, replica: Replica) -> SafeString | str:
        return _shown_state(replica, last_reports()) if replica.pk else "-"

    @asks_why("Drain: no new request for the selected servers")
    def drain(self, request: HttpRequest, replicas: QuerySet[Replica], asked: dict[str, Any]) -> None:
        for url in sorted(set(replicas.values_list("url", flat=True))):
            self._set_draining(request, url, is_draining=True)

    @asks_why("End the draining of the selected servers")
    def undrain(self, request: HttpRequest, replicas: QuerySet[Replica], asked: dict[str, Any]) -> None:
        for url in sorted(set(replicas.values_list("url", flat=True))):
            self._set_draining(request, url, is_draining=False)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("fleet/", wrap(require_safe(never_cache(self.fleet_view))), name="inference_replica_fleet"),
            path("fleet/drain/", wrap(require_POST(self.drain_view)), name="inference_replica_drain"),
            *super().get_urls(),
        ]

    def fleet_view(self, request: HttpRequest) -> HttpResponse:
        """Show every model, its versions and their servers."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": "Fleet",
            "opts": self.opts,
            "media": self.media,
            "aliases": fleet_overview(),
            "now": timezone.now(),
            "may_change": self.has_change_permission(request),
        }
        return TemplateResponse(request, "admin/inference/replica/fleet.html", context)

    def drain_view(self, request: HttpRequest) -> HttpResponse:
        """Drain the server at `url`, or with `undo` end that; back to the fleet. First ask why."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        url, is_draining = request.POST.get("url", ""), "undo" not in request.POST
        form = WhyForm(request.POST if "confirmed" in request.POST else None)
        if not form.is_valid():
            return self._ask_why_drained(request, form, url, is_draining=is_draining)
        with transaction.atomic():
            self._set_draining(request, url, is_draining=is_draining)
        return HttpResponseRedirect(reverse("admin:inference_replica_fleet"))

    def _ask_why_drained(self, request: HttpRequest, form: WhyForm, url: str, *, is_draining: bool) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": f"Drain {url}" if is_draining else f"Use {url} again",
            "opts": self.opts,
            "media": self.media,
            "form": form,
            "url": url,
            "is_draining": is_draining,
        }
        return TemplateResponse(request, "admin/inference/replica/drain.html", context)

    def _set_draining(self, request: HttpRequest, url: str, *, is_draining: bool) -> None:
        rows = set_draining(url, is_draining=is_draining)
        changes = {"is_draining": {"before": not is_draining, "after": is_draining}}
        action, told = ("drained", "Draining.") if is_draining else ("undrained", "Draining ended.")
        for row in rows:
            self.audit_with_history(request, action, row, told, changes)
        if not rows:
            self.message_user(request, "There is no such replica any more.", messages.ERROR)
            return
        # The admin writes a message's first letter large, which no address should be.
        sentence = "Draining: no new request for" if is_draining else "In use again:"
        self.message_user(request, f"{sentence} {rows[0].url}.", messages.SUCCESS)


def _state_column(reports: Reports) -> Callable[[Replica], str | bool]:
    @admin.display(description="State")
    def state(replica: Replica) -> str | bool:
        return _shown_state(replica, reports)

    return state


def _shown_state(replica: Replica, reports: Reports) -> SafeString:
    standing = replica_standing(replica, reports)
    return format_html(
        '<span class="fleet-state fleet-state--{}">{}</span> <span class="fleet-why">{}</span>',
        standing.state,
        standing.state_in_words,
        standing.why,
    )
