"""A tokenizer like a model's own, a chat template around it, and a counter that says what it was asked."""

from functools import cache, lru_cache

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from inference.tgi.errors import Unreachable
from inference.token_counting import TemplateTokens

_SPECIAL = ["<|im_start|>", "<|im_end|>"]
_CORPUS = [
    "The quick brown fox asks what the weather will be like in the north of the country tomorrow, and how to answer.",
    "Please remember that the budget is 3,500 euros, that we decided on the second of March, and that she likes tea.",
    "def answer(question: str) -> str:\n    return sorted(question.split())[0]\n\n    for each in range(10):\n",
    "Der schnelle Fuchs fragt nach dem Wetter; die Antwort ist lang, aber nicht falsch.",
    "今日はいい天気ですね。明日の会議は三時からです。",
    "السلام عليكم ورحمة الله وبركاته",
    "system\nuser\nassistant\n" * 9,
]


@cache
def tokenizer():
    """Return a small byte-level BPE: every text has tokens, and what was not met has one for each byte."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        special_tokens=_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_CORPUS * 3, trainer)
    return tokenizer


def rendered(messages):
    """Return the prompt as the template makes it: a last answer is left open, for the model to go on."""
    return "".join(_turns(messages))


def _turns(messages):
    turns = [f"<|im_start|>{message.role}\n{message.content}<|im_end|>\n" for message in messages]
    if messages and messages[-1].role == "assistant":
        return [*turns[:-1], turns[-1].removesuffix("<|im_end|>\n")]
    return [*turns, "<|im_start|>assistant\n"]


@lru_cache(maxsize=20_000)
def tokens_of(text):
    return len(tokenizer().encode_batch_fast([text])[0])


def prompt_tokens(messages):
    """Return the server's own count: the judge. No token reaches over the mark with which each turn begins."""
    return sum(map(tokens_of, _turns(messages)))


_MARGIN = 2


class Counter:
    """Counts, and notes what it was asked. `bias` makes the parts look shorter than they are in the whole."""

    def __init__(self, name="bpe", *, bias=1.0, is_exact=True):
        self.name, self.bias, self.is_exact = name, bias, is_exact
        self.texts, self.prompts = [], []

    async def count_texts(self, texts):
        assert len(set(texts)) == len(texts)
        self.texts += texts
        return [int(tokens_of(text) / self.bias) for text in texts]

    async def count_prompt(self, messages):
        self.prompts.append(tuple(messages))
        return prompt_tokens(messages)

    async def template(self):
        around = tokens_of("<|im_start|>assistant\n") + _MARGIN
        return TemplateTokens(base=around, per_message=around + tokens_of("<|im_end|>\n"))

    @property
    def was_asked(self):
        return bool(self.texts or self.prompts)


class Nobody(Counter):
    """A server that is away."""

    async def count_texts(self, texts):
        raise Unreachable("It is away.")

    async def count_prompt(self, messages):
        raise Unreachable("It is away.")

    async def template(self):
        raise Unreachable("It is away.")
