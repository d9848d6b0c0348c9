"""Addresses below `/v1/`."""

from django.urls import path

from conversations.api import context, conversations, generations, memories, model_list, preferences, replies

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
    path("models", model_list.ModelsView.as_view(), name="models"),
]
