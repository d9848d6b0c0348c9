"""A socket that ends leaves nothing behind, whatever else has failed."""

import asyncio
import json

import pytest
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator

from conversations.streaming.consumers import LiveConsumer
from conversations.streaming.hub import close_hub
from foundation.database import in_database
from tests.accounts.factories import make_key
from tests.inference.core.factories import make_generation

pytestmark = pytest.mark.django_db(transaction=True)


def following():
    return [task for task in asyncio.all_tasks() if task.get_name().startswith("socket follows")]


async def test_a_socket_that_ends_while_redis_is_away_follows_nothing_any_more(own_valkey, settings):
    layer = settings.CHANNEL_LAYERS["default"]
    settings.CHANNEL_LAYERS = {"default": {**layer, "CONFIG": {**layer["CONFIG"], "hosts": [own_valkey.url]}}}
    generation = await in_database(make_generation)
    secret = await in_database(make_key, generation.user)
    socket = WebsocketCommunicator(LiveConsumer.as_asgi(), "/v1/live", subprotocols=["bearer", secret])
    assert (await socket.connect(timeout=10))[0]
    await socket.send_to(json.dumps({"type": "follow", "generation_id": str(generation.pk)}))
    assert json.loads(await socket.receive_from(timeout=10))["type"] == "start"
    assert len(following()) == 1
    own_valkey.stop()
    await socket.disconnect(timeout=20)
    assert following() == []
    await close_hub()
    own_valkey.start()
    await get_channel_layer().flush()
