"""What this app tells those above it."""

from django.dispatch import Signal

credentials_revoked = Signal()
"""Sent after the commit with `user_id` and `credential`: a credential of the user's is no longer good.

`credential` is the name in `Caller.credential`, or `None` for every credential of the user's. Whatever was opened with
it (streams, sockets) must end, or authenticate again.
"""

invoice_issued = Signal()
"""Sent after the commit with `invoice_id`. A process that ends right then sends none: look for what was missed, too."""

invoice_changed = Signal()
"""Sent after the commit with `invoice_id`: it was paid, or credited in part or in full. May be missed, as above."""

subscription_ended = Signal()
"""Sent after the commit with `subscription_id`: the user is on the default tier, whoever collected is to stop."""
