"""What the billing page's forms say."""

from django import forms


class ChosenPlanForm(forms.Form):
    """The plan that was chosen."""

    tier = forms.SlugField()
