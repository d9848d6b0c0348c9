"""The shapes of exports and imports."""

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from conversations.models import Export, Import
from conversations.models.transfer import TransferStatus
from foundation.serializers import StrictSerializer

_STATUSES = TransferStatus.choices


class NothingSerializer(StrictSerializer):
    """An empty object."""


class ExportSerializer(serializers.ModelSerializer[Export]):
    """An export; `url` is where its file is, once it is done."""

    export_id = serializers.UUIDField(source="pk", read_only=True)
    status = serializers.ChoiceField(_STATUSES, read_only=True)
    url = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField(help_text="Why it failed.")

    class Meta:
        model = Export
        fields = ("export_id", "status", "url", "byte_count", "error", "created_at", "expires_at")
        read_only_fields = fields

    def get_url(self, export: Export) -> str | None:
        return reverse("export_file", args=[export.pk]) if export.status == TransferStatus.DONE else None

    def get_error(self, export: Export) -> str | None:
        return export.error_message or None


class ExportPageSerializer(serializers.Serializer[Any]):
    """The exports whose files are kept, newest first."""

    data = ExportSerializer(many=True)  # type: ignore[assignment]
    next_cursor = serializers.CharField(allow_null=True)


class NewImportSerializer(StrictSerializer):
    """The file: an export of this site or of ChatGPT, as it was downloaded."""

    file = serializers.FileField(allow_empty_file=True, use_url=False)


class ReportedConversationSerializer(serializers.Serializer[Any]):
    """What came of one conversation."""

    title = serializers.CharField()
    outcome = serializers.ChoiceField(["imported", "skipped", "refused"])
    reason = serializers.CharField(allow_null=True)
    conversation_id = serializers.UUIDField(allow_null=True)


class ReportSerializer(serializers.Serializer[Any]):
    """What came of the file so far. Of very many conversations only the first are listed."""

    imported = serializers.IntegerField()
    skipped = serializers.IntegerField(help_text="Were there already.")
    refused = serializers.IntegerField()
    error = serializers.CharField(allow_null=True, help_text="Why the import failed.")
    conversations = ReportedConversationSerializer(many=True)
    not_listed = serializers.IntegerField()


class ImportSerializer(serializers.ModelSerializer[Import]):
    """An import, and how far it has come."""

    import_id = serializers.UUIDField(source="pk", read_only=True)
    status = serializers.ChoiceField(_STATUSES, read_only=True)
    progress = serializers.FloatField(read_only=True, help_text="From 0 to 1.")
    report = serializers.SerializerMethodField(help_text="Null until the file is being read.")

    class Meta:
        model = Import
        fields = ("import_id", "status", "progress", "report", "created_at")
        read_only_fields = fields

    @extend_schema_field(ReportSerializer(allow_null=True))
    def get_report(self, bringing: Import) -> dict[str, Any] | None:
        return bringing.report or None
