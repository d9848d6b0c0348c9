"""`/v1/account`: the caller's account, and its erasure."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.erasure import receipts
from accounts.erasure.closing import request_erasure
from accounts.erasure.confirming import is_address_of
from accounts.exceptions import InvalidRequest
from accounts.models import User
from foundation.serializers import StrictSerializer, TextField

ERASURE_STATUSES = [("under_way", "Under way"), ("completed", "Completed")]


class AccountSerializer(serializers.ModelSerializer[User]):
    """The caller's account."""

    account_id = serializers.UUIDField(source="pk", read_only=True)
    tier = serializers.CharField(source="tier_id", read_only=True)
    created_at = serializers.DateTimeField(source="date_joined", read_only=True)

    class Meta:
        model = User
        fields = ("account_id", "email", "name", "tier", "time_zone", "created_at")
        read_only_fields = fields


class ErasureRequestSerializer(StrictSerializer):
    """Which account is meant, for who wants to be sure."""

    confirm = TextField(required=False, max_length=254, help_text="The account's email address.")


class RequestedErasureSerializer(serializers.Serializer[Any]):
    """An erasure that has begun."""

    erasure_id = serializers.UUIDField()
    status = serializers.ChoiceField(ERASURE_STATUSES)
    receipt_url = serializers.URLField(help_text="Where it is told what has been erased. Keep it: it has the secret.")
    due_at = serializers.DateTimeField(help_text="When all of it is erased at the latest.")


class AccountView(APIView):
    """The caller's account."""

    scope = "account"

    @extend_schema(operation_id="get_account", tags=["Account"], responses=AccountSerializer)
    def get(self, request: Request) -> Response:
        """Tell what the account is called, and its tier."""
        return Response(AccountSerializer(_user(request)).data)

    @extend_schema(
        operation_id="erase_account",
        tags=["Account"],
        request=ErasureRequestSerializer,
        responses={202: RequestedErasureSerializer},
        description=f"""Close the account for good, and erase all that belongs to it.

At once no key, session or token of it is good any more, its streams and sockets end, and answers under way are stopped.
Then it is erased, within {settings.ERASURE_HOURS} hours and usually within seconds. The receipt tells what has been
erased, and what is kept and why. There is no way back.""",
    )
    def delete(self, request: Request) -> Response:
        asked = ErasureRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        user = _user(request)
        confirm = asked.validated_data.get("confirm")
        if confirm is not None and not is_address_of(user, confirm):
            raise InvalidRequest("confirm: This is not the address of this account.", param="confirm")
        erasure = request_erasure(user.pk)
        told = receipts.receipt_of(erasure)
        shown = {
            "erasure_id": told.erasure_id,
            "status": told.status,
            "receipt_url": receipts.link(erasure),
            "due_at": told.due_at,
        }
        return Response(
            RequestedErasureSerializer(shown).data,
            status=status.HTTP_202_ACCEPTED,
            headers={"Cache-Control": "no-store"},
        )


def _user(request: Request) -> User:
    assert isinstance(request.user, User)
    return request.user
