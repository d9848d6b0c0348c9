"""What a reply asks of a model server."""

from contextlib import asynccontextmanager

import pytest

from conversations.context.material import Material, Said
from conversations.services.answering import Answer
from conversations.services.live_replies import LiveReply
from foundation.database import in_database
from foundation.ids import new_id
from inference import token_stream
from inference.cancellation import Cancellation
from inference.catalog import Catalog, Model, ModelVersion, Replica, ServerKind
from inference.fleet import Fleet
from inference.model_server import ServerInfo
from inference.openai_compatible import OpenAICompatibleClient
from inference.tgi.client import model_session
from inference.tgi.errors import InvalidRequest
from tests.inference.core.factories import make_attempt
from tests.inference.core.jobs import open_permit
from tests.inference.tgi.scripted_server import delta, response_of, scripted_server, stream_of

pytestmark = pytest.mark.django_db(transaction=True)

SERVED = ServerInfo("org/served-model", None, None, None, None, None)
MATERIAL = Material((Said(new_id(), "user", "What?"),))
SAYS_HI = stream_of(delta("Hi"), delta("", "stop"), "[DONE]")


@asynccontextmanager
async def answering(publisher, client, script, *, notices=(), **version):
    """An answer that an OpenAI-compatible server with this script is to write, for a version as described."""
    attempt = await in_database(make_attempt, model="small", notices=list(notices))
    reply = LiveReply(attempt, publisher.writer(attempt.generation_id, attempt.number), Cancellation())
    async with scripted_server(script) as server, model_session() as session:
        replica = Replica(server.url, ServerKind.OPENAI_COMPATIBLE)
        catalog = Catalog((Model("small", (ModelVersion("small@1", (replica,), **version),)),), "small")
        fleet = Fleet(lambda: catalog, lambda _replica: OpenAICompatibleClient(server.url, session=session))
        fleet.identify(fleet.states[server.url], SERVED)
        fleet.admit(fleet.states[server.url])
        yield Answer(reply, fleet, open_permit(client)), server


async def test_an_openai_compatible_server_is_asked_for_the_model_that_it_serves(publisher, client):
    async with answering(publisher, client, SAYS_HI) as (answer, server):
        await answer.write(MATERIAL)
    assert answer.reply.writer.text == "Hi"
    assert answer.reply.first_token_at is not None
    (exchange,) = server.exchanges
    assert exchange.body["model"] == "org/served-model"


@pytest.mark.parametrize(
    ("version", "name"), [({}, "org/served-model"), ({"model_id": "org/served-model"}, "small@1")], ids=str
)
async def test_an_answer_names_its_replica_and_the_version_or_what_the_server_says(publisher, client, version, name):
    async with answering(publisher, client, SAYS_HI, **version) as (answer, server):
        await answer.write(MATERIAL)
    outcome = answer.complete()
    assert (outcome.replica, outcome.model_version) == (server.url, name)


async def test_an_answer_that_failed_names_them_too(publisher, client):
    refuses = response_of(422, b'{"error": "too long"}')
    async with answering(publisher, client, refuses, model_id="org/served-model") as (answer, server):
        with pytest.raises(InvalidRequest):
            await answer.write(MATERIAL)
        outcome = answer.failed("invalid_request", "No.")
    assert (outcome.replica, outcome.model_version) == (server.url, "small@1")


async def test_a_notice_is_told_once_however_many_attempts_begin(publisher, client):
    known_and_not = ["output_shortened", "known_to_a_newer_version"]
    async with answering(publisher, client, SAYS_HI, notices=known_and_not) as (answer, _):
        await answer.write(MATERIAL)
        first = await published_by(publisher, client, answer)
    async with answering(publisher, client, SAYS_HI, notices=known_and_not) as (answer, _):
        answer.tell_no_more(first)
        await answer.write(MATERIAL)
        second = await published_by(publisher, client, answer)
    assert [event.type for event in first] == ["notice", "token"]
    assert [event.type for event in second] == ["token"]


async def published_by(publisher, client, answer):
    await publisher.drain(answer.reply.writer, 5)
    pages = token_stream.replay(client, answer.reply.attempt.generation_id)
    return [event async for page in pages for event in page]


async def test_an_answer_keeps_to_its_version_s_limit(publisher, client):
    async with answering(publisher, client, SAYS_HI, max_answer_tokens=7) as (answer, server):
        await answer.write(MATERIAL)
    (exchange,) = server.exchanges
    assert exchange.body["max_tokens"] == 7
