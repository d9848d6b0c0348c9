"""`/v1/limits`: where the caller stands with each limit of the tier."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import quotas
from accounts.api.limits_serializers import LimitsSerializer
from accounts.models import User


class LimitsView(APIView):
    """The caller's limits."""

    scope = "read"

    @extend_schema(operation_id="list_limits", tags=["Account"], responses=LimitsSerializer)
    def get(self, request: Request) -> Response:
        """List the limits of the caller's tier: what each allows, what is used, what remains, when it resets."""
        user = request.user
        assert isinstance(user, User)
        shown = LimitsSerializer({"tier": user.tier_id, "data": quotas.limits_of(user)})
        return Response(shown.data, headers=quotas.rate_limit_headers(quotas.peek(user)))
