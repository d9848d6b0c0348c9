"""The pages of an account: what it used, what it costs, how it signs in."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
