"""What a name and an address may look like, in the settings and in the tables alike."""

from django.core.exceptions import ValidationError

from inference.catalog import is_name, is_server_address


def validate_name(name: str) -> None:
    """Refuse what could not stand in `MODEL_FLEET`."""
    if not is_name(name):
        raise ValidationError("Use letters, digits, '-', '_' and '.'.", code="name")


def validate_address(url: str) -> None:
    """Refuse what is no server's address."""
    if not is_server_address(url):
        raise ValidationError("Write an address like http://host:port.", code="address")
