"""What the billing page's forms say to Stripe."""

from django import forms


class CheckoutForm(forms.Form):
    """The plan that was chosen. `attempt` was made with the page: sent twice, it begins one payment."""

    tier = forms.SlugField()
    attempt = forms.UUIDField()
