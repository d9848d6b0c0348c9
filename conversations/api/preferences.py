"""`/v1/preferences`: what the caller wants of every conversation."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations.api.conversations import user_of
from conversations.api.memory_serializers import ChangedPreferencesSerializer, PreferencesSerializer
from conversations.services import preferences


class PreferencesView(APIView):
    """The caller's standing instructions, and whether memories are used."""

    required_scope = {"GET": "read", "PATCH": "write"}

    @extend_schema(operation_id="get_preferences", tags=["Memories"], responses=PreferencesSerializer)
    def get(self, request: Request) -> Response:
        """Return the preferences."""
        return Response(PreferencesSerializer(preferences.preference_of(user_of(request).pk)).data)

    @extend_schema(
        operation_id="change_preferences",
        tags=["Memories"],
        request=ChangedPreferencesSerializer,
        responses=PreferencesSerializer,
    )
    def patch(self, request: Request) -> Response:
        """Change what is named; it counts from the next prompt on."""
        asked = ChangedPreferencesSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        changed = preferences.change(user=user_of(request), changes=dict(asked.validated_data))
        return Response(PreferencesSerializer(changed).data)
