"""Reads JSON bodies strictly."""

from collections.abc import Mapping
from typing import Any, BinaryIO

import orjson
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser


class StrictJSONParser(BaseParser):
    """RFC 8259 JSON in UTF-8: no NaN, no lone surrogates, no nesting beyond what `orjson` reads (1024)."""

    media_type = "application/json"

    def parse(
        self, stream: BinaryIO, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the value; raise `ParseError`, which the error table answers as `malformed_json`."""
        try:
            return orjson.loads(stream.read())
        except orjson.JSONDecodeError as error:
            raise ParseError(f"The body is not valid JSON: {error}.") from error
