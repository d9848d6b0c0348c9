"""Reads JSON bodies strictly."""

import json
from collections.abc import Mapping
from typing import IO, Any, NoReturn

import orjson
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.parsers import BaseParser

from foundation.text import is_storable, made_storable


class StrictJSONParser(BaseParser):
    """RFC 8259 JSON in UTF-8: no NaN, no lone surrogates, no nesting beyond what `orjson` reads (1024)."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the value; raise `ParseError` for what is no JSON, `ValidationError` for lone surrogates in it."""
        most_bytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(most_bytes + 1)
        if len(body) > most_bytes:
            raise RequestDataTooBig
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            _refuse_lone_surrogates(body)
            raise ParseError(f"The body is not valid JSON: {error}.") from error


def _refuse_lone_surrogates(body: bytes) -> None:
    r"""Raise `ValidationError`, which names the fields, if the body is JSON but for escapes like `\ud800`."""
    try:
        value = json.loads(body.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return
    fields = value if isinstance(value, dict) else {"body": value}
    faulty = [name for name, held in fields.items() if not is_storable(name + json.dumps(held, ensure_ascii=False))]
    if faulty:
        sentence = "This contains a lone surrogate, which is half a character; remove it."
        raise ValidationError({made_storable(name): [sentence] for name in faulty})


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
