"""The pages of an account: what it used, what it costs, how it signs in."""

from django.urls import path

from accounts.views import erasure, stripe

urlpatterns = [
    path("delete", erasure.delete_account, name="delete_account"),
    path("billing/checkout", stripe.begin, name="billing_checkout"),
    path("billing/portal", stripe.portal, name="billing_portal"),
    path("billing/done", stripe.done, name="billing_done"),
]
