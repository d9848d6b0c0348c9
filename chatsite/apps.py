"""The app's entry in Django's registry."""

from importlib import import_module

from django.apps import AppConfig
from django.core.checks import Tags, register

from chatsite.checks import check_mail, check_site_url


class ChatsiteConfig(AppConfig):
    name = "chatsite"

    def ready(self) -> None:
        import_module("chatsite.model_names")  # needs the apps loaded
        for check in (check_mail, check_site_url):
            register(check, Tags.security, deploy=True)
