"""Prints invoices and credit notes as PDF: the same bytes for the same paper."""

import logging
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

from fontTools.ttLib import TTFont
from fpdf import FPDF

from accounts.billing.charges import Line
from accounts.billing.money import shown
from accounts.billing.papers import Paper

# They tell which letters a paper has, and so what is in a customer's name.
for _chatty in ("fontTools", "fpdf"):
    logging.getLogger(_chatty).setLevel(logging.WARNING)

_FONTS = {
    "Noto Sans": Path(str(files("fontpkg_noto_sans"))) / "files" / "NotoSans[wdth,wght].ttf",
    "Noto Sans Arabic": Path(str(files("fontpkg_noto_sans_arabic"))) / "files" / "NotoSansArabic[wdth,wght].ttf",
    "Noto Sans CJK": Path(str(files("noto_cjk_sans_jp_regular"))) / "NotoSansCJKjp-Regular.otf",
}
"""Latin, Greek, Cyrillic; Arabic; Chinese, Japanese, Korean: the first that has a character prints it."""
PDF_TYPE = "application/pdf"
_MAIN = "Noto Sans"
_WIDTH_MM = 170
_AMOUNT_MM = 40
_LINE_MM = 6
_SIZE_PT = 10
_TOTAL_PT = 12


def print_paper(paper: Paper) -> bytes:
    """Return the paper as a PDF."""
    pdf = _blank_sheet(paper)
    _write(pdf, paper.issuer)
    pdf.ln(_LINE_MM)
    _write(pdf, [paper.title], size_pt=18)
    pdf.ln(_LINE_MM)
    _write(pdf, paper.customer)
    pdf.ln(_LINE_MM)
    _write(pdf, [f"{name}: {value}" for name, value in paper.facts])
    pdf.ln(_LINE_MM)
    for line in paper.lines:
        _write_amount(pdf, line, paper.currency)
    _rule(pdf)
    _write_amount(pdf, paper.total, paper.currency, size_pt=_TOTAL_PT)
    return bytes(pdf.output())


def _blank_sheet(paper: Paper) -> FPDF:
    pdf = FPDF(format="A4")
    pdf.set_creation_date(paper.issued_at)
    pdf.set_title(paper.title)
    pdf.set_lang("en")
    pdf.set_margins(20, 20)
    pdf.c_margin = 0
    names = _fonts_for(_characters_of(paper))
    for name in names:
        pdf.add_font(name, fname=_FONTS[name])
    pdf.set_font(_MAIN, size=_SIZE_PT)
    pdf.set_fallback_fonts([name for name in names if name != _MAIN])
    # Arabic letters are joined and run from the right.
    pdf.set_text_shaping(True)
    pdf.add_page()
    return pdf


def _write(pdf: FPDF, texts: Iterable[str], *, size_pt: float = _SIZE_PT) -> None:
    pdf.set_font_size(size_pt)
    for text in texts:
        pdf.multi_cell(_WIDTH_MM, _LINE_MM * size_pt / _SIZE_PT, printable(text), new_x="LMARGIN", new_y="NEXT")
    pdf.set_font_size(_SIZE_PT)


def _rule(pdf: FPDF) -> None:
    pdf.ln(_LINE_MM / 3)
    pdf.line(pdf.l_margin, pdf.get_y(), pdf.l_margin + _WIDTH_MM, pdf.get_y())
    pdf.ln(_LINE_MM / 3)


def _write_amount(pdf: FPDF, line: Line, currency: str, *, size_pt: float = _SIZE_PT) -> None:
    """Write a line with its amount at the right of its first row; what does not fit goes to the next page whole."""
    pdf.set_font_size(size_pt)
    text, width = printable(line.description), _WIDTH_MM - _AMOUNT_MM
    rows = pdf.multi_cell(width, _LINE_MM, text, dry_run=True, output="LINES")
    assert isinstance(rows, list)
    if pdf.will_page_break(len(rows) * _LINE_MM):
        pdf.add_page()
    top = pdf.get_y()
    pdf.multi_cell(width, _LINE_MM, text, new_x="RIGHT", new_y="NEXT", align="L")
    bottom = pdf.get_y()
    pdf.set_xy(pdf.l_margin + width, top)
    pdf.cell(_AMOUNT_MM, _LINE_MM, shown(line.amount, currency), align="R")
    pdf.set_xy(pdf.l_margin, bottom)
    pdf.set_font_size(_SIZE_PT)


def printable(text: str) -> str:
    """Return the text with each character that no font has as its number, `U+0E01`: nothing is left out."""
    lines = text.splitlines()
    return "\n".join("".join(each if _is_known(each) else f"U+{ord(each):04X}" for each in line) for line in lines)


def _is_known(character: str) -> bool:
    return any(ord(character) in _characters_in(name) for name in _FONTS)


def _fonts_for(characters: set[int]) -> list[str]:
    """Return which fonts are needed, the main one first: the largest takes half a second to read."""
    names, left = [], set(characters)
    for name in _FONTS:
        if name == _MAIN or left & _characters_in(name):
            names.append(name)
            left -= _characters_in(name)
    return names


def _characters_of(paper: Paper) -> set[int]:
    texts = [*paper.issuer, *paper.customer, *(line.description for line in paper.lines)]
    return {ord(character) for character in "".join(texts)}


@cache
def _characters_in(name: str) -> frozenset[int]:
    with TTFont(_FONTS[name], lazy=True) as font:
        return frozenset(font.getBestCmap())
