"""`/v1/exports` and `/v1/imports`: taking along what one has, and bringing it in."""

from typing import Any
from uuid import UUID

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import ParseError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations.api.conversations import user_of
from conversations.api.transfer_serializers import (
    ExportPageSerializer,
    ExportSerializer,
    ImportSerializer,
    NewImportSerializer,
    NothingSerializer,
)
from conversations.services.exports import asking
from conversations.services.exports.download import download
from conversations.services.imports import uploads
from foundation.pages import PAGE_PARAMETERS, limit_of


class UploadParser(MultiPartParser):
    """A form with a file. What cannot be read is told as any other body that cannot."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        uploads.check_length(_length_of(parser_context))
        return super().parse(stream, media_type, parser_context)


class ExportsView(APIView):
    """The caller's exports."""

    scope = "account"

    @extend_schema(
        operation_id="list_exports", tags=["Your data"], parameters=PAGE_PARAMETERS, responses=ExportPageSerializer
    )
    def get(self, request: Request) -> Response:
        """List the exports that are kept, newest first."""
        query = request.query_params
        page = asking.exports_of(user_of(request).pk, cursor=query.get("cursor"), limit=limit_of(query))
        return Response({"data": ExportSerializer(page.items, many=True).data, "next_cursor": page.next_cursor})

    @extend_schema(
        operation_id="create_export",
        tags=["Your data"],
        request=NothingSerializer,
        responses={202: ExportSerializer},
    )
    def post(self, request: Request) -> Response:
        """Have all that you have here written into one zip. While that goes on, a further call returns it."""
        NothingSerializer(data=request.data).is_valid(raise_exception=True)
        export = asking.ask_for(user_of(request))
        return Response(ExportSerializer(export).data, status=status.HTTP_202_ACCEPTED)


class ExportView(APIView):
    """One export of the caller's."""

    scope = "account"

    @extend_schema(operation_id="get_export", tags=["Your data"], responses=ExportSerializer)
    def get(self, request: Request, export_id: UUID) -> Response:
        """Say how far it is, and where its file is."""
        return Response(ExportSerializer(asking.export_of(user_of(request).pk, export_id)).data)


class ExportFileView(APIView):
    """The file of an export."""

    scope = "account"

    @extend_schema(
        operation_id="get_export_file",
        tags=["Your data"],
        responses={(200, "application/zip"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, export_id: UUID) -> StreamingHttpResponse:
        """Fetch the zip; `not_found` until it is done."""
        return download(asking.export_of(user_of(request).pk, export_id))


class ImportsView(APIView):
    """The caller's imports."""

    scope = "account"
    parser_classes = [UploadParser]

    @extend_schema(
        operation_id="create_import",
        tags=["Your data"],
        request={"multipart/form-data": NewImportSerializer},
        responses={202: ImportSerializer},
    )
    def post(self, request: Request) -> Response:
        """Import the conversations of a file. What was imported before is not imported again."""
        asked = NewImportSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        bringing = uploads.accept(user_of(request), asked.validated_data["file"])
        return Response(ImportSerializer(bringing).data, status=status.HTTP_202_ACCEPTED)


class ImportView(APIView):
    """One import of the caller's."""

    scope = "account"

    @extend_schema(operation_id="get_import", tags=["Your data"], responses=ImportSerializer)
    def get(self, request: Request, import_id: UUID) -> Response:
        """Say how far it is, and what came of each conversation."""
        return Response(ImportSerializer(uploads.import_of(user_of(request).pk, import_id)).data)


def _length_of(parser_context: Any) -> int:
    length = parser_context["request"].META.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal():
        raise ParseError("The length of the body is no number.")
    return int(length)
