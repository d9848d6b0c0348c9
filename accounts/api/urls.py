"""This app's part of `/v1`."""

from django.urls import path

from accounts.api.account import AccountView
from accounts.api.api_keys import APIKeysView, APIKeyView
from accounts.api.billing import InvoicePDFView, InvoicesView, InvoiceView
from accounts.api.limits import LimitsView
from accounts.api.usage import UsageView

urlpatterns = [
    path("account", AccountView.as_view(), name="account"),
    path("api-keys", APIKeysView.as_view(), name="api-keys"),
    path("api-keys/<uuid:api_key_id>", APIKeyView.as_view(), name="api-key"),
    path("invoices", InvoicesView.as_view(), name="invoices"),
    path("invoices/<uuid:invoice_id>", InvoiceView.as_view(), name="invoice"),
    path("invoices/<uuid:invoice_id>/pdf", InvoicePDFView.as_view(), name="invoice-pdf"),
    path("limits", LimitsView.as_view(), name="limits"),
    path("usage", UsageView.as_view(), name="usage"),
]
