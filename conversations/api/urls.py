"""Addresses below `/v1/`."""

from django.urls import path

from conversations.api import context, conversations, generations, memories, model_list, preferences, replies, transfers

urlpatterns = [
    path("conversations", conversations.ConversationsView.as_view(), name="conversations"),
    path("conversations/<uuid:conversation_id>", conversations.ConversationView.as_view(), name="conversation"),
    path(
        "conversations/<uuid:conversation_id>/context",
        context.ConversationContextView.as_view(),
        name="conversation_context",
    ),
    path("conversations/<uuid:conversation_id>/fork", conversations.ForkView.as_view(), name="fork"),
    *replies.urlpatterns,
    path("generations/<uuid:generation_id>", generations.GenerationView.as_view(), name="generation"),
    path(
        "generations/<uuid:generation_id>/context", context.GenerationContextView.as_view(), name="generation_context"
    ),
    path("generations/<uuid:generation_id>/stream", generations.GenerationStreamView.as_view(), name="stream"),
    path("generations/<uuid:generation_id>/cancel", generations.CancelGenerationView.as_view(), name="cancel"),
    path("memories", memories.MemoriesView.as_view(), name="memories"),
    path("memories/<uuid:memory_id>", memories.MemoryView.as_view(), name="memory"),
    path("preferences", preferences.PreferencesView.as_view(), name="preferences"),
    path("exports", transfers.ExportsView.as_view(), name="exports"),
    path("exports/<uuid:export_id>", transfers.ExportView.as_view(), name="export"),
    path("exports/<uuid:export_id>/file", transfers.ExportFileView.as_view(), name="export_file"),
    path("imports", transfers.ImportsView.as_view(), name="imports"),
    path("imports/<uuid:import_id>", transfers.ImportView.as_view(), name="import"),
    path("models", model_list.ModelsView.as_view(), name="models"),
]
