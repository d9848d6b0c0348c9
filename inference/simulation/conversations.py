"""The people of a simulation: who comes when, what they ask, how long they think."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from inference.prefixes import BLOCK_ENDS, Prefix, blocks_in
from inference.simulation.scenarios import Scenario

BYTES_PER_TOKEN = 4
MOST_TURNS = 40
_BLOCK_BITS = 8
_SYSTEM_PROMPTS = 1 << 48


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, and the answer that it will have; `think_seconds` pass between the answer before and it."""

    question_tokens: int
    answer_tokens: int
    think_seconds: float


@dataclass(slots=True)
class Conversation:
    """One conversation as it is led; `asked` turns have been put, and `written_by` wrote the last answer."""

    number: int
    begins: float
    system_prompt: int
    system_tokens: int
    turns: list[Turn]
    asked: int = 0
    written_by: str = ""
    _blocks: list[int] = field(default_factory=list)

    @property
    def turn(self) -> Turn:
        """The last turn that was put."""
        return self.turns[self.asked - 1]

    def history(self, turns: int) -> list[tuple[int, int]]:
        """Return the system prompt and the first turns with their answers: a key and a number of tokens each."""
        said = [
            (self.segment(index), turn.question_tokens + turn.answer_tokens)
            for index, turn in enumerate(self.turns[:turns])
        ]
        return [(-1 - self.system_prompt, self.system_tokens), *said]

    def prompt(self) -> list[tuple[int, int]]:
        """Return the present prompt: the history, and the question that is open."""
        return [*self.history(self.asked - 1), (self.segment(self.asked - 1), self.turn.question_tokens)]

    def segment(self, index: int) -> int:
        return self.number * MOST_TURNS + index

    def prefix(self) -> Prefix:
        """Return the present prompt's blocks as the router would be given them."""
        tokens = sum(tokens for _, tokens in self.prompt())
        for index in range(len(self._blocks), blocks_in(tokens * BYTES_PER_TOKEN)):
            is_shared = BLOCK_ENDS[index] <= self.system_tokens * BYTES_PER_TOKEN
            owner = _SYSTEM_PROMPTS + self.system_prompt if is_shared else self.number
            self._blocks.append(owner << _BLOCK_BITS | index)
        return tuple(self._blocks)


def conversations_of(scenario: Scenario) -> Iterator[Conversation]:
    """Yield the conversations by the time they begin; the same for every policy."""
    random = Random(scenario.seed)  # noqa: S311 -- traffic, no secret
    lengths = [_about(random, scenario.system_tokens) for _ in range(scenario.system_prompts)]
    popularity = list(accumulate(1 / (rank + 1) ** scenario.zipf for rank in range(scenario.system_prompts)))
    prompts = range(scenario.system_prompts)
    rate, now = scenario.conversations_per_second, 0.0
    for number in range(scenario.conversations):
        now += random.expovariate(rate)
        (prompt,) = random.choices(prompts, cum_weights=popularity)
        count = min(MOST_TURNS, 1 + int(random.expovariate(1 / (scenario.turns - 0.5))))
        turns = [_turn(random, scenario) for _ in range(count)]
        yield Conversation(number, now, prompt, lengths[prompt], turns)


def _turn(random: Random, scenario: Scenario) -> Turn:
    return Turn(
        _about(random, scenario.question_tokens),
        _about(random, scenario.answer_tokens),
        random.lognormvariate(0.0, 1.0) * scenario.think_seconds * 0.607,
    )


def _about(random: Random, mean: float) -> int:
    """Return a length around the mean, a few of them much longer, as people write."""
    return 1 + int(random.lognormvariate(0.0, 0.8) * mean * 0.726)
