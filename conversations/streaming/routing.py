"""WebSocket addresses."""

from channels.generic.websocket import AsyncWebsocketConsumer
from django.urls import path, re_path

from conversations.streaming.consumers import LiveConsumer


class NothingHere(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels is untyped
    """Refuses the handshake: an address that is not there is nothing to fill the log with."""

    async def connect(self) -> None:
        await self.close()


websocket_urlpatterns = [path("v1/live", LiveConsumer.as_asgi()), re_path("", NothingHere.as_asgi())]
