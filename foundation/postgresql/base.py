"""The backend, where Django looks for it."""

from django.db.backends.postgresql import base

from foundation.pool import is_silent


class DatabaseWrapper(base.DatabaseWrapper):
    """Asks the server only where the connection gives reason to."""

    def is_usable(self) -> bool:
        if self.connection is not None and is_silent(self.connection):
            return True
        usable: bool = super().is_usable()
        return usable
