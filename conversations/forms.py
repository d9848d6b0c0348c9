"""What people send from the page."""

from typing import Any

from django import forms

from conversations.exceptions import InvalidRequest
from conversations.services.conversations import MOST_TITLE_CHARACTERS
from conversations.services.messages import NewMessage


class MessageForm(forms.Form):
    """The composer."""

    content = forms.CharField(strip=False, error_messages={"required": "Write a message first."})
    model = forms.CharField(required=False, max_length=100)
    parent_id = forms.UUIDField(required=False)
    temporary = forms.BooleanField(required=False)
    idempotency_key = forms.CharField(required=False, max_length=255)

    def clean_content(self) -> str:
        # Browsers send every line break of a form as CRLF.
        content: str = self.cleaned_data["content"].replace("\r\n", "\n")
        if not content.strip():
            raise forms.ValidationError("Write a message first.")
        return content

    def message(self, *, is_background: bool) -> NewMessage:
        """Return what was written; raise `InvalidRequest` with a sentence."""
        fields = valid(self)
        return NewMessage(
            content=fields["content"],
            model=fields["model"] or None,
            parent=fields["parent_id"] or "active",
            is_background=is_background,
            is_temporary=fields["temporary"],
        )


class TitleForm(forms.Form):
    """The rename field of a conversation's menu."""

    title = forms.CharField(max_length=MOST_TITLE_CHARACTERS, error_messages={"required": "A title cannot be empty."})


def valid(form: forms.Form) -> dict[str, Any]:
    """Return the cleaned fields; raise `InvalidRequest` with the first sentence there is to say."""
    if form.is_valid():
        return form.cleaned_data
    field, errors = next(iter(form.errors.items()))
    raise InvalidRequest(str(errors[0]), param=field)
