"""The receipt of an erasure: its secret, its link, its mail, and what it says. It says nothing of the person."""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.template.loader import render_to_string
from django.utils import timezone

from accounts.derived_secrets import derived_secret
from accounts.erasure.kept import KEPT, Kept
from accounts.models import Erasure, User
from foundation.addresses import whole_address

_PURPOSE = b"accounts.erasure.receipt.v1:"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What is told of an erasure."""

    erasure_id: UUID
    status: str
    requested_at: datetime
    completed_at: datetime | None
    due_at: datetime
    stores: tuple[dict[str, Any], ...]
    kept: tuple[Kept, ...]


def receipt_of(erasure: Erasure) -> Receipt:
    """Return what the receipt says now."""
    return Receipt(
        erasure_id=erasure.pk,
        status="completed" if erasure.completed_at else "under_way",
        requested_at=erasure.requested_at,
        completed_at=erasure.completed_at,
        due_at=erasure.requested_at + timedelta(hours=settings.ERASURE_HOURS),
        stores=tuple(erasure.stores),
        kept=KEPT,
    )


def link(erasure: Erasure) -> str:
    """Return the receipt's address with its secret, the same whenever it is asked for."""
    secret = urlencode({"secret": derived_secret(_PURPOSE, erasure.pk)})
    return f"{whole_address('erasure_receipt', erasure.pk)}?{secret}"


def find(erasure_id: UUID, secret: str) -> Erasure | None:
    """Return the erasure that the secret is for."""
    erasure = Erasure.objects.filter(pk=erasure_id).first()
    stored = bytes(erasure.digest) if erasure is not None else bytes(32)
    is_right = hmac.compare_digest(stored, _digest(secret))
    return erasure if is_right else None


def digest_of_secret(erasure_id: UUID) -> bytes:
    """Return what is stored of an erasure's secret."""
    return _digest(derived_secret(_PURPOSE, erasure_id))


@transaction.atomic
def mail(erasure_id: UUID) -> None:
    """Send the link to the account's address, once; raise what the mail server makes of it."""
    erasure = Erasure.objects.select_for_update().get(pk=erasure_id)
    if erasure.mailed_at is not None or erasure.user_id is None:
        return
    email = User.objects.values_list("email", flat=True).get(pk=erasure.user_id)
    text = render_to_string("erasure/mail.txt", {"link": link(erasure), "hours": settings.ERASURE_HOURS})
    send_mail("Your account is being erased", text, None, [email])
    erasure.mailed_at = timezone.now()
    erasure.save(update_fields=["mailed_at"])


def delete_outlived() -> int:
    """Delete receipts whose time is over; return how many."""
    before = timezone.now() - timedelta(days=settings.RECEIPT_KEEP_DAYS)
    return Erasure.objects.filter(completed_at__lt=before).delete()[0]


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
