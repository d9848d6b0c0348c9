"""Renders a form's inputs with the product's class."""

from django import template
from django.forms import BoundField
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag
def field_input(field: BoundField) -> SafeString:
    """Render a field's input. Its label says what it is, so it has no placeholder that would say it again."""
    return field.as_widget(attrs={"class": "field__input", "placeholder": False})
