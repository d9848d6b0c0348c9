"""The addresses of the chat's pages."""

from django.urls import path

from conversations.views import pages, sending, sidebar

urlpatterns = [
    path("", pages.new_conversation, name="new_conversation"),
    path("models", pages.model_choice, name="model_choice"),
    path("conversations", sidebar.older, name="older_conversations"),
    path("c/new/messages", sending.send, name="send_first_message"),
    path("c/<uuid:conversation_id>", pages.conversation, name="conversation"),
    path("c/<uuid:conversation_id>/messages", sending.messages, name="messages"),
    path("c/<uuid:conversation_id>/row", sidebar.row, name="conversation_row"),
    path("c/<uuid:conversation_id>/rename", sidebar.rename, name="rename_conversation"),
    path("c/<uuid:conversation_id>/delete", sidebar.delete, name="delete_conversation"),
    path("g/<uuid:generation_id>/cancel", sending.cancel, name="cancel_generation"),
    path("m/<uuid:message_id>/continue", sending.continue_answer, name="continue_answer"),
    path("m/<uuid:message_id>/regenerate", sending.regenerate, name="regenerate_message"),
]
