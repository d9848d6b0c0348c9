"""The last invoice of an account that is erased reaches its customer, whom no page of the site lets in any more."""

from io import BytesIO

import pytest
from django.core import mail
from pypdf import PdfReader

from accounts.billing import mails
from accounts.erasure import progress
from accounts.erasure.closing import request_erasure
from accounts.erasure.stores import all_stores
from accounts.models import Invoice, User
from tests.accounts.billing.making import make_invoice
from tests.accounts.factories import make_user

pytestmark = pytest.mark.django_db


def text_of(message) -> str:
    [attached] = message.attachments
    name, content, kind = attached
    assert (name.startswith("invoice-"), kind) == (True, "application/pdf")
    return "\n".join(page.extract_text() for page in PdfReader(BytesIO(content)).pages)


def test_an_invoice_is_mailed_with_its_pdf_and_the_page_that_has_it():
    invoice = make_invoice(make_user())
    mails.send_owed()
    [message] = mail.outbox
    assert invoice.number in text_of(message)
    assert f"/account/invoices/{invoice.pk}" in message.body


def test_a_closed_account_is_sent_to_no_page():
    user = make_user()
    make_invoice(user)
    User.objects.update(is_active=False)
    mails.send_owed()
    [message] = mail.outbox
    assert Invoice.objects.get().number in text_of(message)
    assert "/account/" not in message.body


def test_stripe_forgets_the_customer_only_once_the_last_invoice_is_made():
    erasure = request_erasure(make_user().pk)
    assert "stripe" not in [store.name for store in progress.ready_stores(erasure)]
    in_order = [store.name for store in all_stores()]
    assert in_order.index("conversations") < in_order.index("last invoices") < in_order.index("stripe")
