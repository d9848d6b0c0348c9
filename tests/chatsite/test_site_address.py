"""The site's own address, as it is written into mails and given to other sites."""

import json
import os
import subprocess
import sys

from django.conf import settings

from accounts.invitations import invite
from foundation.addresses import whole_address

SHOW = "import json; from chatsite import settings as s; print(json.dumps([s.SITE_URL, s.CSRF_TRUSTED_ORIGINS]))"


def test_a_slash_at_its_end_makes_no_difference():
    chosen = os.environ | {"SITE_URL": "https://chat.example.org/"}
    command = [sys.executable, "-c", SHOW]
    shown = subprocess.run(command, cwd=settings.BASE_DIR, env=chosen, capture_output=True, check=True)
    assert json.loads(shown.stdout) == ["https://chat.example.org", ["https://chat.example.org"]]


def test_every_link_begins_with_it(settings, db):
    settings.SITE_URL = "https://chat.example.org"
    assert whole_address("billing_page") == "https://chat.example.org/account/billing"
    _, link = invite("alice@example.com")
    assert link.startswith("https://chat.example.org/account/invitation/")
