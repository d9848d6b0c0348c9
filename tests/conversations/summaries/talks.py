"""Stored conversations whose prompts are made as the product makes them, and models that restate them."""

import asyncio

import orjson
from django.utils import timezone

from conversations.context.fitting import fit
from conversations.models import Conversation, Errand, Generation, Message, Summary
from conversations.services import background, claims, errands, summaries
from tests.accounts.factories import make_user
from tests.conversations.context.counting import Counter, tokens_of
from tests.inference.core.factories import answer_to, read_material_of

ANSWER = "That can be arranged, of course; most people ask for it at the counter, and the rest finds it by itself."
MARK = "fact:"
FACTS = [
    "fact: my name is Elodie Marchetti",
    "fact: the budget is 4,350 euros",
    "fact: we leave on 14 September",
    "fact: the code is KX-7719",
    "fact: nothing with hazelnuts",
]


def restate(prompt):
    """Answer as a model that restates well: what was marked as a fact, and that there were small matters."""
    lines = [line.partition(MARK) for line in prompt[-1][1].splitlines()]
    return "\n".join([f"- {MARK}{fact}" for _, mark, fact in lines if mark] + ["- small matters"])


class StoredTalk:
    """A conversation that goes on turn by turn in the database. `record` is of the last prompt."""

    def __init__(self, *, window_tokens=1_000, answer_tokens=200, **fields):
        self.window_tokens, self.answer_tokens = window_tokens, answer_tokens
        self.conversation = Conversation.objects.create(user=make_user(), model="small", **fields)
        self.last = None
        self.prompt = None

    def ask(self, question, answer=ANSWER, *, after=None, status="complete") -> Generation:
        """Ask after the last answer, or after another, and answer from the prompt that this makes."""
        asked = self._say("user", question, parent=after.message if after else self.last)
        generation = answer_to(asked)
        attempt = claims.claim(generation.pk)
        self.prompt = asyncio.run(self._fit(read_material_of(attempt)))
        record = orjson.loads(orjson.dumps(self.prompt.record.as_json()))
        Generation.objects.filter(pk=generation.pk).update(
            status=status, context=record, finished_at=timezone.now(), lease_expires_at=None
        )
        Message.objects.filter(pk=generation.pk).update(
            status=status, content=answer, token_counts={"bpe": tokens_of(answer)}
        )
        generation = Generation.objects.select_related("message", "conversation").get(pk=generation.pk)
        self.last = generation.message
        return generation

    def chat(self, turns, *, model=None) -> Generation:
        """Ask so many small questions; after each answer do what there is to do, where there is a `model`."""
        for _ in range(turns):
            generation = self.ask("And what about that other matter, which is small, but has to be thought of too?")
            if model:
                self.look_after(generation, model)
        return generation

    def look_after(self, generation, model=restate) -> None:
        """Have written what is due after an answer, and what is due after that."""
        summaries.ask_for_summary(generation)
        waiting = Errand.objects.filter(conversation=self.conversation, kind="summary", status="queued")
        while errand := waiting.first():
            write(errand, model(errand.prompt))

    @property
    def system(self) -> str:
        """What stood before the conversation in the last prompt."""
        return self.prompt.messages[0].content if self.prompt.messages[0].role == "system" else ""

    @property
    def shown(self) -> str:
        """All that the model saw last."""
        return "\n".join(message.content for message in self.prompt.messages)

    def stored(self) -> list[Summary]:
        return list(Summary.objects.filter(conversation=self.conversation).order_by("covers_up_to_id"))

    def _say(self, role, content, *, parent) -> Message:
        counts = {"bpe": tokens_of(content)}
        return Message.objects.create(
            conversation=self.conversation, parent=parent, role=role, content=content, token_counts=counts
        )

    async def _fit(self, material):
        counter = Counter()
        return await fit(material, counter=counter, window_tokens=self.window_tokens, answer_tokens=self.answer_tokens)


def write(errand, text) -> None:
    """Let a model have written this for an errand, and see what comes of it."""
    attempt = errands.claim(errand.pk)
    assert attempt is not None
    assert errands.finish(attempt, text)
    background.settle(errand.pk)
