"""An answer's Markdown as HTML that is safe to show."""

import json
from pathlib import Path

import pytest

from conversations.markdown import render

CORPUS = json.loads((Path(__file__).parent.parent / "js" / "corpus.json").read_text())


def test_raw_html_is_shown_as_text():
    html = render('<script>alert(1)</script> <img src=x onerror=alert(1)> List<String> a<b && c>d <User /> "< 18"')
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;script&gt;" in html
    assert "List&lt;String&gt;" in html
    assert '"&lt; 18"' in html


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "&#x6A;avascript:alert(1)",
        "\tjavascript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "//example.org",
        "/accounts/logout/",
        "#main",
    ],
)
def test_only_web_and_mail_addresses_become_links(address):
    assert "<a" not in render(f"[label]({address})")


def test_links_tell_the_other_side_nothing_and_open_elsewhere():
    html = render("[a](https://example.org) <mailto:a@example.org> https://example.org/b")
    assert html.count('rel="noopener noreferrer nofollow"') == 3
    assert html.count('target="_blank"') == 3


def test_a_remote_image_is_a_link_and_never_loaded():
    html = render("![a *cat*](https://example.org/cat.png)")
    assert "<img" not in html
    assert 'href="https://example.org/cat.png"' in html
    assert ">a cat</a>" in html


def test_a_bare_address_is_linked_without_what_ends_the_sentence():
    html = render("See https://example.org/a_(b), or (https://example.org/x?a=1).")
    assert 'href="https://example.org/a_(b)"' in html
    assert 'href="https://example.org/x?a=1"' in html


def test_an_address_inside_code_is_not_linked():
    assert "<a" not in render("`https://example.org` and\n\n```\nhttps://example.org\n```")


def test_code_keeps_its_text_and_names_its_language():
    html = render("```python\nprint('<b>')  \n\n```")
    assert '<code-block data-language="python">' in html
    assert "print('&lt;b&gt;')  \n\n</code>" in html


def test_a_language_that_is_none_is_left_out():
    assert "data-language" not in render('```"><script>\nx\n```')


def test_an_answers_headings_stand_below_the_pages_own():
    html = render("# one\n\n###### six")
    assert '<h3 dir="auto">one</h3>' in html
    assert '<h6 dir="auto">six</h6>' in html


def test_prices_stay_prices():
    text = "about $10K flat, R$ 12,29/metro, $123 - $234, $800\\*\\*"
    assert render(text) == f'<p dir="auto">{text.replace("\\", "")}</p>'


def test_a_table_carries_no_style_attribute():
    html = render("| a | b |\n|:-:|--:|\n| 1 | 2 |")
    assert "style" not in html
    assert 'data-align="center"' in html
    assert 'data-align="right"' in html


@pytest.mark.parametrize("name", CORPUS)
def test_every_prefix_of_the_corpus_is_rendered_without_scripts(name):
    text = CORPUS[name]
    for length in range(0, len(text) + 1, 3):
        html = render(text[:length]).lower()
        assert "<script" not in html
        assert "<img" not in html
        assert "<svg" not in html
        assert 'href="javascript' not in html
