"""Prints mail for whoever tries the product out."""

from django.core.mail import EmailMessage
from django.core.mail.backends import console


class EmailBackend(console.EmailBackend):
    """Prints the text as it was written: the transfer encoding would break a long link, which is there to be opened."""

    def write_message(self, message: EmailMessage) -> None:
        recipients = ", ".join(message.recipients())
        self.stream.write(f"To: {recipients}\nSubject: {message.subject}\n\n{message.body}\n{'-' * 79}\n")
