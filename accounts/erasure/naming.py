"""What in a text names an account: its id or its address, and no address that merely contains it."""

import re
from uuid import UUID

from accounts.models import User

_STARTS, _ENDS = r"(?<![\w.+-])", r"(?![\w-]|\.\w)"


def naming(user_id: UUID) -> str:
    """Return a regular expression that finds what names the account; Python and PostgreSQL read it alike."""
    addresses = User.objects.filter(pk=user_id).values_list("email", flat=True)
    return "|".join([str(user_id), *(f"{_STARTS}{re.escape(address)}{_ENDS}" for address in addresses)])
