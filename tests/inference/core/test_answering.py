"""What a reply asks of a model server."""

import pytest

from conversations.services.answering import Answer
from conversations.services.live_replies import LiveReply
from foundation.database import in_database
from inference.cancellation import Cancellation
from inference.catalog import Catalog, Model, ModelVersion, Replica, ServerKind
from inference.fleet import Fleet
from inference.model_server import ServerInfo
from inference.openai_compatible import OpenAICompatibleClient
from inference.tgi.client import model_session
from tests.inference.core.factories import make_attempt
from tests.inference.core.jobs import open_permit
from tests.inference.tgi.scripted_server import delta, scripted_server, stream_of

pytestmark = pytest.mark.django_db(transaction=True)

SERVED = ServerInfo("org/served-model", None, None, None, None, None)


async def test_an_openai_compatible_server_is_asked_for_the_model_that_it_serves(publisher, client):
    attempt = await in_database(make_attempt, model="small")
    reply = LiveReply(attempt, publisher.writer(attempt.generation_id, attempt.number), Cancellation())
    async with (
        scripted_server(stream_of(delta("Hi"), delta("", "stop"), "[DONE]")) as server,
        model_session() as session,
    ):
        replica = Replica(server.url, ServerKind.OPENAI_COMPATIBLE)
        catalog = Catalog((Model("small", (ModelVersion("small", (replica,)),)),), "small")
        fleet = Fleet(lambda: catalog, lambda _replica: OpenAICompatibleClient(server.url, session=session))
        fleet.identify(fleet.states[server.url], SERVED)
        fleet.admit(fleet.states[server.url])
        await Answer(reply, fleet, open_permit(client)).write()
    assert reply.writer.text == "Hi"
    assert reply.first_token_at is not None
    (exchange,) = server.exchanges
    assert exchange.body["model"] == "org/served-model"
