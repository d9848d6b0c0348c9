"""Whether somebody who asks for an erasure means the account that it would be."""

from accounts.models import User


def is_address_of(user: User, address: str) -> bool:
    """Say whether this is the account's address, as people write it."""
    return address.strip().lower() == user.email
