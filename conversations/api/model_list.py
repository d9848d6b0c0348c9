"""`/v1/models`: what the caller may choose from."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations.api.conversations import user_of
from conversations.models_on_offer import ModelOnOffer, models_on_offer


class CapabilitiesSerializer(serializers.Serializer[Any]):
    """What a model can do beside writing text."""

    tools = serializers.BooleanField()
    vision = serializers.BooleanField()
    reasoning = serializers.BooleanField()


class PricesSerializer(serializers.Serializer[Any]):
    """What a million tokens cost, in the site's currency."""

    tokens_in = serializers.DecimalField(12, 4, help_text="Read.")
    tokens_cached = serializers.DecimalField(12, 4, help_text="Read from the prefix cache.")
    tokens_out = serializers.DecimalField(12, 4, help_text="Written.")


class ModelSerializer(serializers.Serializer[Any]):
    """A model, with the fields that OpenAI's clients know and some more."""

    id = serializers.CharField(help_text="The name to send as `model`.")
    object = serializers.ChoiceField(["model"])
    created = serializers.IntegerField()
    owned_by = serializers.CharField()
    tier = serializers.CharField(help_text="The caller's tier, which offers the model.")
    context_size = serializers.IntegerField(
        allow_null=True, help_text="Tokens that prompt and answer may have together; null while no server has told it."
    )
    max_answer_tokens = serializers.IntegerField(
        allow_null=True, help_text="The longest answer, in tokens; null where the model sets no limit of its own."
    )
    capabilities = CapabilitiesSerializer()
    prices = PricesSerializer()
    is_default = serializers.BooleanField(help_text="Whether `auto` means this model.")
    is_ready = serializers.BooleanField(help_text="Whether one of its servers answers now.")


class ModelListSerializer(serializers.Serializer[Any]):
    """OpenAI's list."""

    object = serializers.ChoiceField(["list"])
    data = ModelSerializer(many=True)  # type: ignore[assignment]


class ModelsView(APIView):
    """The models that the caller may choose."""

    scope = "read"

    @extend_schema(operation_id="list_models", tags=["Models"], responses=ModelListSerializer)
    def get(self, request: Request) -> Response:
        """List the models in OpenAI's shape, with the caller's tier and the size of each model's window in tokens."""
        tier = user_of(request).tier
        return Response({"object": "list", "data": [_shown(model, tier.name) for model in models_on_offer(tier)]})


def _shown(model: ModelOnOffer, tier: str) -> dict[str, Any]:
    return {
        "id": model.alias,
        "object": "model",
        "created": 0,
        "owned_by": "organization",
        "tier": tier,
        "context_size": model.context_tokens,
        "max_answer_tokens": model.max_answer_tokens,
        "capabilities": CapabilitiesSerializer(model.capabilities).data,
        "prices": PricesSerializer(model.prices).data,
        "is_default": model.is_default,
        "is_ready": model.is_ready,
    }
