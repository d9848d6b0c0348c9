"""API keys in the admin: seen without their secrets, and revoked."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.admin.rights import may_act_on
from accounts.api_keys import revoke_key
from accounts.exceptions import Forbidden
from accounts.models import APIKey
from foundation.audited_admin import asks_why
from foundation.read_only_admin import ActedOnAdmin


@admin.register(APIKey)
class APIKeyAdmin(ActedOnAdmin):
    """Keys are made by those whose they are."""

    list_display = ("prefix", "name", "user", "scopes", "last_used_at", "expires_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("prefix", "name", "user__email")
    exclude = ("digest",)
    actions = ("revoke",)

    @asks_why("Revoke", permissions=["act"], note="What was opened with the keys ends at once.")
    def revoke(self, request: HttpRequest, keys: QuerySet[APIKey], asked: dict[str, Any]) -> None:
        for key in keys.select_related("user"):
            if not may_act_on(request.user, key.user):
                raise Forbidden("Only superusers revoke the keys of staff.")
            if key.revoked_at is None:
                revoke_key(key)
                self.audit(request, "revoked", key, {"key": {"before": "usable", "after": "revoked"}})
        self.message_user(request, "Revoked.", messages.SUCCESS)
