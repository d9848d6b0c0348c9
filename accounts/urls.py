"""The pages of an account: what it used, what it costs, how it signs in."""

from django.urls import path

from accounts.views import api_keys, billing, erasure, security, stripe, usage

urlpatterns = [
    path("api-keys", api_keys.keys, name="api_keys_page"),
    path("api-keys/<uuid:api_key_id>/revoke", api_keys.revoke_key, name="revoke_api_key_page"),
    path("security", security.security, name="security"),
    path("sign-out-everywhere", security.sign_out_everywhere, name="sign_out_everywhere"),
    path("invitation/<str:secret>", security.follow_invitation, name="invitation"),
    path("usage", usage.page, name="usage_page"),
    path("usage.csv", usage.table, name="usage_table"),
    path("limits", usage.limits, name="limits_told"),
    path("time-zone", usage.time_zone, name="usage_time_zone"),
    path("delete", erasure.delete_account, name="delete_account"),
    path("billing", billing.page, name="billing_page"),
    path("billing/plan", billing.choose, name="choose_plan"),
    path("billing/end", billing.leave, name="leave_plan"),
    path("invoices/<uuid:invoice_id>", billing.invoice, name="invoice_page"),
    path("invoices/<uuid:invoice_id>.pdf", billing.invoice_pdf, name="invoice_pdf"),
    path("credit-notes/<uuid:credit_note_id>.pdf", billing.credit_note_pdf, name="credit_note_pdf"),
    path("billing/checkout", stripe.begin, name="billing_checkout"),
    path("billing/portal", stripe.portal, name="billing_portal"),
    path("billing/done", stripe.done, name="billing_done"),
]
