"""The app's entry in Django's registry."""

from importlib import import_module

from django.apps import AppConfig

from foundation.audit import keep_with


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = "People"  # allauth's own section of the admin is called Accounts

    def ready(self) -> None:
        keep_with(import_module("accounts.audit").keep)
        # Each registers what it defines as it is read, and needs the apps loaded.
        for module in ("accounts.receivers", "accounts.api.schema", "accounts.stripe.receivers"):
            import_module(module)
        import_module("accounts.erasure.own_stores").register_all()
