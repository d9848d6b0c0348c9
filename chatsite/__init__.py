"""The composition root: settings, URLs, ASGI, Celery, the supervisor, the error table."""

from chatsite.celery import app as celery_app

__all__ = ["celery_app"]
