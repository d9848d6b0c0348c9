"""Addresses below `/v1/`."""

from django.urls import path

from conversations.api import conversations, generations, model_list, replies

urlpatterns = [
    path("conversations", conversations.ConversationsView.as_view(), name="conversations"),
    path("conversations/<uuid:conversation_id>", conversations.ConversationView.as_view(), name="conversation"),
    *replies.urlpatterns,
    path("generations/<uuid:generation_id>", generations.GenerationView.as_view(), name="generation"),
    path("generations/<uuid:generation_id>/stream", generations.GenerationStreamView.as_view(), name="stream"),
    path("generations/<uuid:generation_id>/cancel", generations.CancelGenerationView.as_view(), name="cancel"),
    path("models", model_list.ModelsView.as_view(), name="models"),
]
