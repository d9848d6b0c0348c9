"""Who is calling: API key, access token, or session."""

from rest_framework.authentication import BaseAuthentication
from rest_framework.authentication import SessionAuthentication as DRFSessionAuthentication
from rest_framework.permissions import IsAuthenticated


class APIKeyAuthentication(BaseAuthentication):
    pass


class AccessTokenAuthentication(BaseAuthentication):
    pass


class SessionAuthentication(DRFSessionAuthentication):
    pass


class HasScope(IsAuthenticated):
    pass
