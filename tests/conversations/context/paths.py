"""Paths and what goes with them, with ids that grow as those of stored messages do."""

import asyncio
from dataclasses import replace
from itertools import count
from uuid import UUID

from conversations.context.fitting import fit
from conversations.context.material import Material, Remembered, Said, Summarised
from tests.conversations.context.counting import Counter, rendered, tokens_of

WORDS = (
    *("answer", "weather", "budget", "euros", "march", "remember", "country", "question", "decided", "north", "brown"),
    *("tea", "sorted", "range", "long", "false", "tomorrow", "what", "how", "please", "that", "will", "the", "and"),
    *("for", "each", "like", "she", "on", "of", "second", "quick", "asks", "return"),
)


def words(tokens, seed=0):
    """Return a text of about so many tokens."""
    text, number = f"{seed}:", seed
    while (missing := tokens - tokens_of(text)) > 0:
        text += " " + " ".join(WORDS[(number * 7 + each * 3) % len(WORDS)] for each in range(max(1, missing // 4)))
        number += 1
    return text


def ids():
    return (UUID(int=number) for number in count(1))


def path_of(*turns):
    """Return the messages of `(role, content)` or `(role, content, passages)`."""
    return tuple(
        Said(UUID(int=number), role, content, passages=tuple(*passages))
        for number, (role, content, *passages) in enumerate(turns, 1)
    )


def exchanges(number, *, question=20, answer=40, start=0):
    """Return the turns of so many exchanges, each text another."""
    return [
        turn
        for each in range(start, start + number)
        for turn in (("user", words(question, each * 2 + 1)), ("assistant", words(answer, each * 2 + 2)))
    ]


def counted(path, name="bpe"):
    """Return the path as it is read once every message was counted."""
    return tuple(replace(said, token_counts={name: tokens_of(said.content)}) for said in path)


def memories_of(*contents):
    return tuple(Remembered(UUID(int=9_000 + number), content) for number, content in enumerate(contents))


def summary(epoch, covers, text=None):
    """Return a summary up to the message with that number."""
    return Summarised(UUID(int=8_000 + epoch), epoch, text or f"- fact {epoch}", UUID(int=covers))


def fitted(path, *, counter=None, window_tokens=2_000, answer_tokens=200, so_far="", **material):
    """Fit a prompt in a loop of its own."""
    return asyncio.run(
        fit(
            Material(tuple(path), **material),
            counter=counter or Counter(),
            window_tokens=window_tokens,
            answer_tokens=answer_tokens,
            so_far=so_far,
        )
    )


class Talk:
    """A conversation that goes on turn by turn, each prompt from the record of the one before."""

    def __init__(self, *, window_tokens, answer_tokens=200, counter=None, **material):
        self.window_tokens, self.answer_tokens, self.counter = window_tokens, answer_tokens, counter or Counter()
        self.material = material
        self.path, self.record, self.summaries = [], None, []
        self._ids = ids()
        self.prompts, self.shares = [], []
        self._before = ""

    def say(self, role, content, **given):
        self.path.append(Said(next(self._ids), role, content, **given))
        return self.path[-1]

    def ask(self, question, answer, **given):
        """Ask, note how much of the prompt is the one before with its answer, and answer."""
        self.say("user", question, **given)
        prompt = self.fit()
        text = rendered(prompt.messages)
        if self._before:
            self.shares.append(common(self._before, text) / len(text))
        self._before = text + answer
        self.prompts.append(prompt)
        self.record = prompt.record
        self.say("assistant", answer)
        self.path[-2:] = counted(self.path[-2:], self.counter.name)
        return prompt

    def fit(self):
        return fitted(
            counter=self.counter,
            window_tokens=self.window_tokens,
            answer_tokens=self.answer_tokens,
            **self.read(),
        )

    def fit_question(self, question):
        """Return the prompt for a question that is not kept."""
        self.say("user", question)
        prompt = self.fit()
        self.path.pop()
        return prompt

    def read(self):
        """Read as the claim does: from where the rest began, and the beginning."""
        read = {"path": self.path, "previous": self.record, "summaries": tuple(self.summaries), **self.material}
        if self.record is None or self.record.tail_from is None:
            return read
        places = {said.message_id: place for place, said in enumerate(self.path)}
        head = self.path[: places[self.record.head_up_to] + 1] if self.record.head_up_to else []
        tail = self.path[places[self.record.tail_from] :]
        unread = len(self.path) - len(head) - len(tail)
        return read | {"path": [*head, *tail], "head_count": len(head), "unread_messages": unread}


def common(before, after):
    """Return how many characters two texts have in common at their beginning."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[:middle] == after[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
