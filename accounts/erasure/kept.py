"""What is kept of an erased account, and why: the receipt, the page and the answer say the same."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kept:
    """One thing that stays; `how` is what was done to it."""

    what: str
    why: str
    how: str


KEPT = (
    Kept(
        "Invoices and credit notes, with the plans and periods that they are for",
        "The law has them kept for its term.",
        "Name, address, Stripe's ids and free text are taken out, and no account belongs to them any more.",
    ),
    Kept(
        "What staff did to the account, in the audit log: who, what, when",
        "Staff must be able to account for what they did.",
        "Whom it was about, why, and the values before and after are taken out.",
    ),
    Kept(
        "The receipt",
        "It is the proof of the erasure, for a year.",
        "It holds numbers and times, nothing of the person.",
    ),
)
