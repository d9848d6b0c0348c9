"""Why the start, or the going on, was given up."""


class StartError(Exception):
    """A sentence for the person at the terminal, who can do something about it."""
