"""The ASGI application: HTTP through Django, the WebSocket through Channels."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
http_application = get_asgi_application()  # loads the apps; what is imported below needs them

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.core.signals import request_started  # noqa: E402
from django.db import close_old_connections, reset_queries  # noqa: E402

import chatsite.urls  # noqa: E402, F401 — else the first request imports all views, and the event loop stands still
from chatsite.programs import ProgramHandler, by_caller  # noqa: E402
from chatsite.request_bodies import RequestBodies  # noqa: E402
from chatsite.uploads import most_bytes_of  # noqa: E402
from conversations.streaming.routing import websocket_urlpatterns  # noqa: E402

# A request's thread has either no connection yet or one that was given back; to look took each request a thread.
request_started.disconnect(close_old_connections)
request_started.disconnect(reset_queries)

application = ProtocolTypeRouter(
    {
        "http": RequestBodies(
            by_caller(programs=ProgramHandler(), pages=http_application),
            most_bytes=most_bytes_of,
        ),
        "websocket": URLRouter(websocket_urlpatterns),
    }
)
