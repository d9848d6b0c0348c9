"""Why something cannot be imported. The messages are for the person whose file it is."""


class UnreadableFile(Exception):
    """The whole file is of no use; nothing of it is imported."""


class RefusedConversation(Exception):
    """One conversation is of no use; the others are imported."""
