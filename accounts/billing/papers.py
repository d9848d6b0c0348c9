"""What an invoice and a credit note say, for whoever shows them: what was said when they were issued, and no more.

Whether an invoice has been paid since is not in it: the same invoice is the same paper for good.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from accounts.billing.charges import Line
from accounts.models import CreditNote, Invoice


@dataclass(frozen=True, slots=True)
class Paper:
    """An invoice or a credit note, as it is printed."""

    title: str
    file_name: str
    issuer: tuple[str, ...]
    customer: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    total: Line
    currency: str
    issued_at: datetime


def invoice_paper(invoice: Invoice) -> Paper:
    """Return what an invoice says."""
    last_day = invoice.period_end - timedelta(microseconds=1)
    return Paper(
        title=f"Invoice {invoice.number}",
        file_name=f"invoice-{invoice.number}.pdf",
        issuer=_issuer_of(invoice),
        customer=_customer_of(invoice),
        facts=(
            ("Issued", _day(invoice.issued_at)),
            ("Period", f"{_day(invoice.period_start)} to {_day(last_day)}"),
            ("Due", _day(invoice.due_at)),
        ),
        lines=tuple(Line(line.description, line.amount) for line in invoice.lines.all()),
        total=Line("Total", invoice.total),
        currency=invoice.currency,
        issued_at=invoice.issued_at,
    )


def credit_note_paper(note: CreditNote) -> Paper:
    """Return what a credit note says."""
    return Paper(
        title=f"Credit note {note.number}",
        file_name=f"credit-note-{note.number}.pdf",
        issuer=_issuer_of(note.invoice),
        customer=_customer_of(note.invoice),
        facts=(("Issued", _day(note.created_at)), ("For invoice", note.invoice.number)),
        lines=(Line(note.reason, note.amount),),
        total=Line("Credited", note.amount),
        currency=note.invoice.currency,
        issued_at=note.created_at,
    )


def _issuer_of(invoice: Invoice) -> tuple[str, ...]:
    return tuple(invoice.issuer.splitlines())


def _customer_of(invoice: Invoice) -> tuple[str, ...]:
    return tuple(filter(None, (invoice.customer_name, invoice.customer_email)))


def _day(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%-d %B %Y}"
