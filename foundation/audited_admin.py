"""An admin in which nothing is changed without a reason, and without a row in the audit log."""

import functools
from collections.abc import Callable, Iterable
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.contrib.admin.actions import delete_selected
from django.contrib.admin.options import ActionLocation
from django.contrib.admin.utils import NestedObjects, flatten_fieldsets
from django.core.exceptions import BadRequest
from django.db import router, transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.template.response import TemplateResponse

from foundation import audit
from foundation.audit import LEAST_REASON_CHARACTERS, MOST_REASON_CHARACTERS, Act
from foundation.audited_changes import ChangeMessage, Changes, changes_of, row_values
from foundation.errors import DomainError

ON_LISTS_AND_PAGES = [ActionLocation.CHANGE_LIST, ActionLocation.CHANGE_FORM]


def why_field() -> forms.CharField:
    """Return the field that asks for a reason."""
    return forms.CharField(
        label="Why?",
        min_length=LEAST_REASON_CHARACTERS,
        max_length=MOST_REASON_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
        help_text="Kept in the audit log with your name and the time, for good.",
    )


class WhyForm(forms.Form):
    """Asks for the reason of a change, and in a subclass for what else an action needs."""

    why = why_field()


class AuditedAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Adds, changes and deletes with a reason; each of them is in the audit log, or does not happen."""

    list_editable = ()  # a list has no place for a reason

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        may = self.has_add_permission(request) if obj is None else self.has_change_permission(request, obj)
        return [*fieldsets, ("Why", {"fields": ("why",)})] if may else fieldsets

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        asked = kwargs.get("fields", ())
        fields = None if asked is None else asked or flatten_fieldsets(self.get_fieldsets(request, obj))
        if not fields or "why" not in fields:
            return super().get_form(request, obj, change=change, **kwargs)
        form = super().get_form(request, obj, change=change, **{**kwargs, "fields": [n for n in fields if n != "why"]})
        return type(form.__name__, (form,), {"why": why_field()})

    def construct_change_message(self, request: HttpRequest, form: Any, formsets: Any, add: bool = False) -> Any:
        message = super().construct_change_message(request, form, formsets, add)
        return ChangeMessage(message, changes_of(form, formsets or (), is_new=add))

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        self.audit(request, "added", obj, getattr(message, "changes", {}))
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        self.audit(request, "changed", obj, getattr(message, "changes", {}))
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for row in _with_what_goes_with_them(queryset):
            changes = {name: {"before": value, "after": None} for name, value in row_values(row).items()}
            self.audit(request, "deleted", row, changes)
        return super().log_deletions(request, queryset)

    def audit(self, request: HttpRequest, action: str, obj: Model, changes: Changes | None = None) -> None:
        """Write down what an action does to a row, and why, in the same transaction."""
        assert transaction.get_connection().in_atomic_block, "a change and its row in the log are one"
        keep_act(request, action, str(obj._meta.model_name), str(obj.pk), changes)

    def audit_with_history(self, request: HttpRequest, action: str, obj: Model, told: str, changes: Changes) -> None:
        """Write it down in the audit log, and in Django's own history of the row as the sentence `told`."""
        self.audit(request, action, obj, changes)
        super().log_change(request, obj, told)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        form = WhyForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and not form.is_valid():
            request.POST = QueryDict()  # as if nothing had been confirmed: Django asks again
        return super().delete_view(request, object_id, {**(extra_context or {}), "why": form})

    def get_actions(self, request: HttpRequest, action_location: ActionLocation = ActionLocation.CHANGE_LIST) -> Any:
        actions = super().get_actions(request, action_location=action_location)
        if deletion := actions.get("delete_selected"):
            deletion.func = _delete_selected_with_a_reason  # type: ignore[assignment]
        return actions


def keep_act(
    request: HttpRequest, action: str, subject_type: str, subject_id: str, changes: Changes | None = None
) -> None:
    """Write down what the request's user does, with the reason that the request brings; without one it is refused."""
    form = WhyForm(request.POST)
    if not form.is_valid():
        raise BadRequest("Nothing is changed here without a reason.")
    actor_id = cast("Any", request.user).pk
    audit.keep(Act(action, subject_type, subject_id, form.cleaned_data["why"], actor_id, changes or {}))


type _AuditedAction = Callable[[Any, HttpRequest, QuerySet[Any], dict[str, Any]], HttpResponseBase | None]


def asks_why(
    description: str, *, permissions: Iterable[str] = ("change",), form: type[WhyForm] = WhyForm, note: str = ""
) -> Callable[[_AuditedAction], Any]:
    """Make a method an action that first asks for a reason (and what else `form` asks for) on a page of its own.

    The method gets the form's values, and what it does is one transaction; it calls `audit` for what it changed.
    """

    def decorate(method: _AuditedAction) -> Any:
        @admin.action(description=description, permissions=list(permissions), location=ON_LISTS_AND_PAGES)
        @functools.wraps(method)
        def action(self: AuditedAdmin, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponseBase | None:
            asked = form(request.POST if "confirmed" in request.POST else None)
            if not asked.is_valid():
                question = {"title": description, "action": method.__name__, "note": note, "form": asked}
                return _ask(self, request, queryset, question)
            try:
                with transaction.atomic(using=router.db_for_write(self.model)):
                    return method(self, request, queryset, asked.cleaned_data)
            except DomainError as error:
                self.message_user(request, error.message, messages.ERROR)
                return None

        return action

    return decorate


def _ask(
    model_admin: AuditedAdmin, request: HttpRequest, queryset: QuerySet[Any], question: dict[str, Any]
) -> HttpResponse:
    context = {
        **model_admin.admin_site.each_context(request),
        **question,
        "opts": model_admin.opts,
        "media": model_admin.media + question["form"].media,
        "queryset": queryset,
        "action_checkbox_name": helpers.ACTION_CHECKBOX_NAME,
        # Wherever it was asked for, the list's address takes the answer.
        "action_address": f"admin:{model_admin.opts.app_label}_{model_admin.opts.model_name}_changelist",
    }
    return TemplateResponse(request, "admin/ask_why.html", context)


def _delete_selected_with_a_reason(
    model_admin: AuditedAdmin, request: HttpRequest, queryset: QuerySet[Any]
) -> HttpResponseBase | None:
    form = WhyForm(request.POST if "post" in request.POST else None)
    if "post" in request.POST and not form.is_valid():
        asked_again = request.POST.copy()
        del asked_again["post"]
        request.POST = asked_again  # type: ignore[assignment]
    with transaction.atomic(using=router.db_for_write(model_admin.model)):
        response = delete_selected(model_admin, request, queryset)
    if isinstance(response, TemplateResponse):
        response.context_data = {**(response.context_data or {}), "why": form}
    return response


def _with_what_goes_with_them(rows: Iterable[Model]) -> list[Model]:
    rows = list(rows)
    if not rows:
        return []
    collector = NestedObjects(using=router.db_for_write(type(rows[0])), origin=rows)
    collector.collect(rows)
    return [row for _model, row in collector.instances_with_model() if not row._meta.auto_created]
