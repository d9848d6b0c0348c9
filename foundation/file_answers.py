"""Answers that are files, made whole."""

from django.http import HttpResponse


def file_to_keep(content: str, *, name: str, content_type: str) -> HttpResponse:
    """Return a file that a browser stores under its name."""
    return _file(content, f'attachment; filename="{name}"', content_type)


def file_to_read(content: bytes, *, name: str, content_type: str) -> HttpResponse:
    """Return a file that a browser shows, and stores under its name if it is told to."""
    return _file(content, f'inline; filename="{name}"', content_type)


def _file(content: str | bytes, disposition: str, content_type: str) -> HttpResponse:
    return HttpResponse(content, content_type=content_type, headers={"Content-Disposition": disposition})
