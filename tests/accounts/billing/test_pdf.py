"""The PDF of an invoice: its words in any script, the same bytes each time."""

from datetime import timedelta
from decimal import Decimal
from io import BytesIO

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pypdf import PdfReader

from accounts.billing.charges import Line
from accounts.billing.papers import Paper
from accounts.billing.pdf import print_paper, printable
from tests.accounts.billing.making import at

NAMES = {
    "Latin": "Søren Kierkegård-Łukasiewicz",
    "Greek": "Νίκος Καζαντζάκης",
    "Cyrillic": "Лев Толстой",
    "Chinese": "王小明",
    "Japanese": "山田太郎さん",
    "Korean": "김철수",
}


def paper(name="Alice", *, lines=1, at_=None) -> Paper:
    return Paper(
        title="Invoice 2026-000001",
        file_name="invoice-2026-000001.pdf",
        issuer=("Example Ltd", "1 High Street", "VAT 123"),
        customer=(name, "alice@example.org"),
        facts=(("Issued", "1 December 2026"), ("Due", "15 December 2026")),
        lines=tuple(Line(f"Plan number {number}", Decimal("1234.50")) for number in range(lines)),
        total=Line("Total", Decimal("1234.50") * lines),
        currency="EUR",
        issued_at=at_ or at(2026, 12, 1, 1),
    )


def text_of(pdf: bytes) -> str:
    # Its reader gives two bytes of some letters one by one.
    return "\n".join(page.extract_text() for page in PdfReader(BytesIO(pdf)).pages).replace("\0", "")


@pytest.mark.parametrize("script", NAMES)
def test_a_name_in_any_of_these_scripts_is_in_the_text(script):
    assert NAMES[script] in text_of(print_paper(paper(NAMES[script])))


def test_an_arabic_name_is_in_the_text_letter_by_letter():
    text = text_of(print_paper(paper("محمد علي")))
    # A reader of PDFs may give what runs from the right in the order in which it stands on the sheet.
    assert "محمد" in text or "دمحم" in text


def test_a_name_of_several_scripts_is_whole():
    text = text_of(print_paper(paper("Лев 山田 Alice")))
    assert all(part in text for part in ("Лев", "山田", "Alice"))


def test_a_character_that_no_font_has_is_told_by_its_number():
    assert printable("Ann \U00012000") == "Ann U+12000"
    assert "U+12000" in text_of(print_paper(paper("Ann \U00012000")))


def test_signs_that_no_font_has_are_told_by_their_numbers_also_within_a_name():
    assert "Ann U+1F600 Lee" in text_of(print_paper(paper("Ann \U0001f600 Lee")))


NAMED = st.text(st.characters(exclude_categories=["Cs"]), max_size=150)


@hypothesis_settings(max_examples=12, deadline=None)
@given(NAMED)
@example("W" * 150)
@example("a\u202eb\u200fc")
@example("\x00\x1b[31m\x7f\ufeff\u2028x\r\ny")
@example("e" + "\u0301" * 60)
@example("محمد Alice 王 Лев \U0001f469\u200d\U0001f467 123")
def test_any_name_can_be_printed_and_the_rest_of_the_paper_stays(name):
    text = text_of(print_paper(paper(name)))
    for part in ("Invoice 2026-000001", "alice@example.org", "EUR 1,234.50", "Total"):
        assert part in text


def test_everything_that_is_on_the_paper_is_printed():
    text = text_of(print_paper(paper()))
    for part in ("Example Ltd", "VAT 123", "Invoice 2026-000001", "Due: 15 December 2026", "EUR 1,234.50", "Total"):
        assert part in text


def test_the_same_paper_is_the_same_bytes_and_another_is_not():
    assert print_paper(paper("山田")) == print_paper(paper("山田"))
    assert print_paper(paper()) != print_paper(paper(at_=at(2026, 12, 1, 1) + timedelta(days=1)))


def test_a_hundred_lines_go_on_over_pages_and_none_is_lost():
    pdf = print_paper(paper(lines=100))
    assert len(PdfReader(BytesIO(pdf)).pages) > 2
    text = text_of(pdf)
    assert all(f"Plan number {number} EUR" in text for number in range(100))
