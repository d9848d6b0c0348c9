"""What a program may send and gets: JSON, whatever its `Accept` says, as the widely used APIs do."""

from collections.abc import Iterable

from django.utils.http import parse_header_parameters
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

_UTF_8 = ("utf-8", "utf8")


class AlwaysJSON(BaseContentNegotiation):
    """Reads bodies by their exact media type, in UTF-8 only; answers with the view's first renderer.

    Where a view answers with an event stream, this is for its errors.
    """

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        try:
            media_type, parameters = parse_header_parameters(request.content_type)
        except ValueError:
            return None
        if parameters.get("charset", _UTF_8[0]).lower() not in _UTF_8:
            return None
        return next((parser for parser in parsers if parser.media_type == media_type.lower()), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or "application/json"
