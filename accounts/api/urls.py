"""This app's part of `/v1`."""

from django.urls import path

from accounts.api.api_keys import APIKeysView, APIKeyView
from accounts.api.limits import LimitsView

urlpatterns = [
    path("api-keys", APIKeysView.as_view(), name="api-keys"),
    path("api-keys/<uuid:api_key_id>", APIKeyView.as_view(), name="api-key"),
    path("limits", LimitsView.as_view(), name="limits"),
]
