"""Why nothing was started."""


class StartError(Exception):
    """A sentence for the person at the terminal, who can do something about it."""
