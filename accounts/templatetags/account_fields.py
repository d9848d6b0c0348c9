"""What the pages of signing in show: a form's inputs with the product's class, and whether accounts are made."""

from django import template
from django.forms import BoundField
from django.template import Context
from django.utils.safestring import SafeString

from accounts import sign_up_rules

register = template.Library()


@register.simple_tag
def field_input(field: BoundField) -> SafeString:
    """Render a field's input. Its label says what it is, so it has no placeholder that would say it again."""
    return field.as_widget(attrs={"class": "field__input", "placeholder": False})


@register.simple_tag(takes_context=True)
def is_sign_up_open(context: Context) -> bool:
    """Say whether whoever reads this page may go on to make an account."""
    return sign_up_rules.is_open_to(context["request"])
