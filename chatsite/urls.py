"""Every address of the site."""

from django.contrib import admin
from django.urls import include, path, re_path

from accounts.views.erasure import receipt
from accounts.views.stripe import webhook as stripe_webhook
from chatsite.errors import not_found_json
from chatsite.health import healthz, metrics, readyz
from chatsite.schema import DocsView, SchemaView

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.urls")),
    path("account/", include("accounts.urls")),
    path("stripe/webhook", stripe_webhook, name="stripe_webhook"),
    path("erasures/<uuid:erasure_id>", receipt, name="erasure_receipt"),
    path("_allauth/", include("allauth.headless.urls")),
    path("v1/schema/", SchemaView.as_view(), name="schema"),
    path("v1/docs/", DocsView.as_view(), name="docs"),
    path("v1/", include("accounts.api.urls")),
    path("v1/", include("conversations.api.urls")),
    re_path(r"^v1(?:/|$)", not_found_json),
    path("", include("conversations.urls")),
]
