"""What people send from the page."""

from datetime import date
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator

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
        content = _with_newlines(self.cleaned_data["content"])
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


class MemoryForm(forms.Form):
    """A memory, new or changed. Browsers without dates send the day as it is written here: 2040-01-31."""

    content = forms.CharField(error_messages={"required": "Say what is to be remembered."})
    expires_on = forms.DateField(
        required=False,
        input_formats=["%Y-%m-%d"],
        validators=[MaxValueValidator(date(9999, 1, 1), "Choose an earlier day.")],
        error_messages={"invalid": "Write the day as in 2040-01-31."},
    )


class SwitchForm(forms.Form):
    """A button that switches something on or off."""

    on = forms.BooleanField(required=False)


class InstructionsForm(forms.Form):
    """The standing instructions."""

    instructions = forms.CharField(required=False, strip=False)

    def clean_instructions(self) -> str:
        instructions: str = self.cleaned_data["instructions"]
        return _with_newlines(instructions)


def _with_newlines(text: str) -> str:
    """Browsers send every line break of a form as CRLF."""
    return text.replace("\r\n", "\n")


def valid(form: forms.Form) -> dict[str, Any]:
    """Return the cleaned fields; raise `InvalidRequest` with the first sentence there is to say."""
    if form.is_valid():
        return form.cleaned_data
    field, errors = next(iter(form.errors.items()))
    raise InvalidRequest(str(errors[0]), param=field)
