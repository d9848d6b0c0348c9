"""What the real small model keeps of ten facts, with what the product adds to it."""

from uuid import UUID

import pytest

from conversations.context.material import Said
from conversations.context.restating import continued
from conversations.context.summaries import points_from, prompt_for_points
from inference.events import Piece
from inference.messages import ChatRequest, SamplingOptions
from inference.tgi.client import TGIClient, model_session
from tests.local_model import served_model

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(300)]

TURNS = [
    "My name is Elodie Marchetti and my budget for the whole trip is 4,350 euros.",
    "Nice to meet you, Elodie! With 4,350 euros you can plan a comfortable trip.",
    "We leave on 14 September. Please remember that I am allergic to hazelnuts.",
    "Noted: departure on 14 September, and nothing with hazelnuts.",
    "Our booking code is KX-7719 and the hotel is called Bellavista.",
    "Thank you. You may want to check in online two days before.",
    "We bring our dog Brutus, and my daughter, who is seven years old.",
    "Brutus will need a leash and a muzzle in trains.",
    "Three of us are vegetarians. If anything happens, call 555-0142.",
    "Understood. Most restaurants there offer pasta and risotto without meat.",
]
FACTS = ["marchetti", "4,350", "14 september", "hazelnut", "kx-7719", "bellavista", "brutus", "seven", "vegetarian"]
FACTS.append("555-0142")


@pytest.fixture(scope="module")
def model_url():
    with served_model(window_tokens=2048) as url:
        yield url


async def written_by(url, messages):
    options = SamplingOptions(max_new_tokens=400, temperature=0)
    async with model_session() as session:
        server = TGIClient(url, session=session)
        events = [each async for each in server.stream_chat(ChatRequest(messages, options, request_id="summary"))]
    return "".join(each.text for each in events if isinstance(each, Piece))


async def test_ten_facts_of_ten_messages_are_in_the_summary(model_url):
    messages = [Said(UUID(int=number), ("assistant", "user")[number % 2], text) for number, text in enumerate(TURNS, 1)]
    written = await written_by(model_url, prompt_for_points(messages, most_bytes=4_000))
    assert points_from(written) is not None, written
    summary = continued("", written, messages).casefold()
    assert [fact for fact in FACTS if fact not in summary] == [], written
