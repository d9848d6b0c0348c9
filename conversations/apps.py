"""The app's entry in Django's registry."""

from importlib import import_module

from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    name = "conversations"

    def ready(self) -> None:
        import_module("conversations.receivers")
        import_module("conversations.titles_for_usage")
        import_module("conversations.erasure").register_all()
