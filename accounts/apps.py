"""The app's entry in Django's registry."""

from importlib import import_module

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = "People"  # allauth's own section of the admin is called Accounts

    def ready(self) -> None:
        # Both register what they define as they are read, and need the apps loaded.
        for module in ("accounts.receivers", "accounts.api.schema"):
            import_module(module)
        import_module("accounts.erasure.own_stores").register_all()
