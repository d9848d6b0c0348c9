"""`/v1/invoices`: the caller's invoices."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.billing.papers import invoice_paper
from accounts.billing.pdf import PDF_TYPE, print_paper
from accounts.exceptions import NotFound
from accounts.models import CreditNote, Invoice, InvoiceLine, User
from foundation.file_answers import file_to_read
from foundation.pages import PAGE_PARAMETERS, limit_of, newest_first


class InvoiceLineSerializer(serializers.ModelSerializer[InvoiceLine]):
    """One line of an invoice."""

    class Meta:
        model = InvoiceLine
        fields = ("description", "amount")
        read_only_fields = fields


class CreditNoteSerializer(serializers.ModelSerializer[CreditNote]):
    """Money given back, or no longer asked for, of an invoice."""

    class Meta:
        model = CreditNote
        fields = ("number", "amount", "reason", "created_at")
        read_only_fields = fields


class InvoiceSerializer(serializers.ModelSerializer[Invoice]):
    """An invoice. Amounts are decimal numbers as strings, in `currency`."""

    invoice_id = serializers.UUIDField(source="pk", read_only=True)
    lines = InvoiceLineSerializer(many=True, read_only=True)
    credit_notes = CreditNoteSerializer(many=True, read_only=True)

    class Meta:
        model = Invoice
        fields = (
            "invoice_id", "number", "status", "currency", "total", "period_start", "period_end", "issued_at", "due_at",
            "paid_at", "lines", "credit_notes",
        )  # fmt: skip
        read_only_fields = fields


class InvoicePageSerializer(serializers.Serializer[Any]):
    """A page of invoices, newest first."""

    data = InvoiceSerializer(many=True)  # type: ignore[assignment]
    next_cursor = serializers.CharField(allow_null=True)


class InvoicesView(APIView):
    """The caller's invoices."""

    scope = "account"

    @extend_schema(
        operation_id="list_invoices", tags=["Account"], parameters=PAGE_PARAMETERS, responses=InvoicePageSerializer
    )
    def get(self, request: Request) -> Response:
        """List the invoices, newest first."""
        query = request.query_params
        page = newest_first(_invoices_of(request), cursor=query.get("cursor"), limit=limit_of(query))
        return Response({"data": InvoiceSerializer(page.items, many=True).data, "next_cursor": page.next_cursor})


class InvoiceView(APIView):
    """One invoice of the caller's."""

    scope = "account"

    @extend_schema(operation_id="get_invoice", tags=["Account"], responses=InvoiceSerializer)
    def get(self, request: Request, invoice_id: UUID) -> Response:
        """Return the invoice."""
        return Response(InvoiceSerializer(_invoice_of(request, invoice_id)).data)


class InvoicePDFView(APIView):
    """One invoice of the caller's, on paper."""

    scope = "account"

    @extend_schema(operation_id="get_invoice_pdf", tags=["Account"], responses={(200, PDF_TYPE): OpenApiTypes.BINARY})
    def get(self, request: Request, invoice_id: UUID) -> HttpResponse:
        """Return the invoice as a PDF: as it was issued, the same bytes each time."""
        paper = invoice_paper(_invoice_of(request, invoice_id))
        return file_to_read(print_paper(paper), name=paper.file_name, content_type=PDF_TYPE)


def _invoice_of(request: Request, invoice_id: UUID) -> Invoice:
    invoice = _invoices_of(request).filter(pk=invoice_id).first()
    if invoice is None:
        raise NotFound("There is no such invoice.")
    return invoice


def _invoices_of(request: Request) -> QuerySet[Invoice]:
    assert isinstance(request.user, User)
    return Invoice.objects.filter(user=request.user).prefetch_related("lines", "credit_notes")
