"""WebSocket addresses."""

from django.urls import path

from conversations.streaming.consumers import LiveConsumer

websocket_urlpatterns = [path("v1/live", LiveConsumer.as_asgi())]
