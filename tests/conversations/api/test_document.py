"""`docs/api.md` says what the code does."""

import re
from pathlib import Path

from django.conf import settings

from accounts.models.api_key import SCOPES
from chatsite.errors import STATUS_BY_CODE

PAGE = (Path(settings.BASE_DIR) / "docs" / "api.md").read_text()


def test_its_table_of_errors_is_the_sites():
    rows = re.findall(r"^\| (\d{3}(?: · \d{3})*) \| (.+) \|$", PAGE, re.MULTILINE)
    assert len(rows) >= 10
    for statuses, text in rows:
        codes = [code for code in re.findall(r"`(\w+)`", text) if code in STATUS_BY_CODE]
        assert {str(STATUS_BY_CODE[code]) for code in codes} == set(statuses.split(" · ")), text


def test_it_names_every_scope_and_the_limits_that_hold():
    for scope in SCOPES:
        assert f"| `{scope}` |" in PAGE
    assert f"{settings.MAX_MESSAGE_CHARACTERS:,} characters" in PAGE
    assert f"{settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 1_000_000} MB" in PAGE
    assert f"within {settings.IDEMPOTENCY_KEEP_HOURS} hours" in PAGE


def test_the_ids_of_its_example_are_those_of_a_real_stream():
    ids = [int(number) for number in re.findall(r"^id: (\d+)$", PAGE, re.MULTILINE)]
    assert ids[0] == 1
    assert ids[1] == len("When") << 16
    assert ids[-1] & 0xFFFF == 0xFFFF
    assert f"Last-Event-ID: {ids[1]}" in PAGE
