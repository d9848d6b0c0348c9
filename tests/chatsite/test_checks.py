"""The warnings of `manage.py check --deploy` that are the product's own."""

import pytest
from django.core.checks import run_checks
from django.test import override_settings


def warnings_with(**settings):
    safe = {"SITE_URL": "https://chat.example.org", "ALLOWED_HOSTS": [".example.org"], "HTTPS": True}
    with override_settings(**{**safe, "ACCOUNT_EMAIL_VERIFICATION": "optional", **settings}):
        return {message.id for message in run_checks(include_deployment_checks=True)}


def test_a_site_whose_mail_is_only_printed_is_warned_of_when_addresses_must_be_confirmed():
    printed = {"default": {"BACKEND": "django.core.mail.backends.console.EmailBackend", "OPTIONS": {}}}
    sent = {"default": {"BACKEND": "django.core.mail.backends.smtp.EmailBackend", "OPTIONS": {}}}
    assert "chatsite.W001" in warnings_with(MAILERS=printed, ACCOUNT_EMAIL_VERIFICATION="mandatory")
    assert "chatsite.W001" not in warnings_with(MAILERS=printed)
    assert "chatsite.W001" not in warnings_with(MAILERS=sent, ACCOUNT_EMAIL_VERIFICATION="mandatory")


@pytest.mark.parametrize("address", ["http://chat.example.org", "https://chat.example.com", "chat.example.org"])
def test_an_address_that_leads_nowhere_is_warned_of(address):
    assert "chatsite.W002" in warnings_with(SITE_URL=address)
    assert "chatsite.W002" not in warnings_with()
