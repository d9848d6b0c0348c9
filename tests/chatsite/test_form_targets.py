"""Where the forms of the site's pages may lead: to itself, and to whom the settings name."""

import json
import os
import subprocess
import sys

from django.conf import settings

SHOW = "import json; from chatsite import settings; print(json.dumps(settings.PAGE_CSP['form-action']))"


def test_forms_may_lead_to_the_sign_in_of_the_organisation_as_well_as_to_stripe():
    chosen = {
        "OIDC_ISSUER": "https://sign-in.example.org/realm",
        "OIDC_CLIENT_ID": "chat",
        "OIDC_CLIENT_SECRET": "secret",
        "STRIPE_SECRET_KEY": "sk_test_1",
        "STRIPE_WEBHOOK_SECRET": "whsec_1",
    }
    command = [sys.executable, "-c", SHOW]
    shown = subprocess.run(command, cwd=settings.BASE_DIR, env=os.environ | chosen, capture_output=True, check=True)
    assert json.loads(shown.stdout) == [
        "'self'",
        "https://sign-in.example.org",
        "https://checkout.stripe.com",
        "https://billing.stripe.com",
    ]
