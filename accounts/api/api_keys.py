"""`/v1/api-keys`: the caller's own keys."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import api_keys
from accounts.api.serializers import (
    APIKeyPageSerializer,
    APIKeySerializer,
    MadeAPIKeySerializer,
    NewAPIKeySerializer,
)
from accounts.authentication import caller_of
from accounts.exceptions import NotFound
from accounts.models import APIKey
from foundation.pages import PAGE_PARAMETERS, limit_of, newest_first


class APIKeysView(APIView):
    """The caller's keys that are not revoked."""

    scope = "account"

    @extend_schema(
        operation_id="list_api_keys", tags=["Account"], parameters=PAGE_PARAMETERS, responses=APIKeyPageSerializer
    )
    def get(self, request: Request) -> Response:
        """List the keys, newest first, never their secrets."""
        query = request.query_params
        page = newest_first(_keys_of(request), cursor=query.get("cursor"), limit=limit_of(query))
        return Response({"data": APIKeySerializer(page.items, many=True).data, "next_cursor": page.next_cursor})

    @extend_schema(
        operation_id="make_api_key",
        tags=["Account"],
        request=NewAPIKeySerializer,
        responses={201: MadeAPIKeySerializer},
    )
    def post(self, request: Request) -> Response:
        """Make a key. Its secret is in this answer and nowhere else; it gets no scope that the caller lacks."""
        asked = NewAPIKeySerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        caller = caller_of(request)
        for scope in asked.validated_data["scopes"]:
            caller.require(scope)
        key, secret = api_keys.make_key(caller.user, **asked.validated_data)
        shown: dict[str, Any] = {**APIKeySerializer(key).data, "key": secret}
        return Response(shown, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class APIKeyView(APIView):
    """One key of the caller's."""

    scope = "account"

    @extend_schema(operation_id="revoke_api_key", tags=["Account"], responses={204: None})
    def delete(self, request: Request, api_key_id: UUID) -> Response:
        """Revoke the key: from now on it opens nothing, and what it opened ends."""
        key = _keys_of(request).filter(pk=api_key_id).first()
        if key is None:
            raise NotFound("There is no such API key.")
        api_keys.revoke_key(key)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _keys_of(request: Request) -> QuerySet[APIKey]:
    return APIKey.objects.filter(user=caller_of(request).user, revoked_at=None)
