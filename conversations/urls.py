"""The addresses of the chat's pages."""

from django.urls import path

from conversations.views import context, data, memories, pages, sending, sidebar

urlpatterns = [
    path("", pages.new_conversation, name="new_conversation"),
    path("memories", memories.page, name="memories_page"),
    path("memories/use", memories.switch_all, name="switch_all_memories"),
    path("memories/instructions", memories.instruct, name="standing_instructions"),
    path("memories/<uuid:memory_id>", memories.change, name="change_memory"),
    path("memories/<uuid:memory_id>/switch", memories.switch, name="switch_memory"),
    path("memories/<uuid:memory_id>/accept", memories.accept, name="accept_memory"),
    path("memories/<uuid:memory_id>/decline", memories.decline, name="decline_memory"),
    path("memories/<uuid:memory_id>/review", memories.review, name="review_memory"),
    path("memories/<uuid:memory_id>/delete", memories.delete, name="delete_memory"),
    path("account/data", data.page, name="data_page"),
    path("account/data/exports", data.exports, name="data_exports"),
    path("account/data/exports/new", data.begin_export, name="begin_export"),
    path("account/data/exports/<uuid:export_id>/file", data.export_file, name="export_file_page"),
    path("account/data/imports", data.imports, name="data_imports"),
    path("account/data/imports/new", data.begin_import, name="begin_import"),
    path("account/data/imports/<uuid:import_id>", data.one_import, name="import_page"),
    path("models", pages.model_choice, name="model_choice"),
    path("conversations", sidebar.older, name="older_conversations"),
    path("c/new/messages", sending.send, name="send_first_message"),
    path("c/<uuid:conversation_id>", pages.conversation, name="conversation"),
    path("c/<uuid:conversation_id>/messages", sending.messages, name="messages"),
    path("c/<uuid:conversation_id>/row", sidebar.row, name="conversation_row"),
    path("c/<uuid:conversation_id>/rename", sidebar.rename, name="rename_conversation"),
    path("c/<uuid:conversation_id>/delete", sidebar.delete, name="delete_conversation"),
    path("g/<uuid:generation_id>/context", context.what_the_model_saw, name="generation_context"),
    path("g/<uuid:generation_id>/cancel", sending.cancel, name="cancel_generation"),
    path("m/<uuid:message_id>/continue", sending.continue_answer, name="continue_answer"),
    path("m/<uuid:message_id>/regenerate", sending.regenerate, name="regenerate_message"),
]
