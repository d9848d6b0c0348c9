"""A real byte-level tokenizer, trained on this project's own pages, and chat templates as models have them."""

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from tests.own_processes import ROOT

SPECIAL = ["<|im_start|>", "<|im_end|>", "<s>", "</s>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
# How Qwen2 and Llama 3 cut a text before they look for tokens.
_CUTS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def train():
    """A tokenizer with two thousand tokens, in a tenth of a second."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_CUTS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    texts = [path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))]
    texts += ["\n" * length + " " * length + "x" for length in range(1, 20) for _ in range(20)]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=2000, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def chatml(messages):
    """Qwen's, with the instructions that it adds where there are none."""
    turns = [(message.role, message.content) for message in messages]
    if turns[0][0] != "system":
        turns.insert(0, ("system", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."))
    return "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns) + "<|im_start|>assistant\n"


def llama_3(messages):
    """It trims, and says dates."""
    dates = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
    system = messages[0].content.strip() if messages[0].role == "system" else ""
    turns = [("system", dates + system)]
    turns += [(message.role, message.content.strip()) for message in messages if message.role != "system"]
    written = (f"<|start_header_id|>{role}<|end_header_id|>\n\n{content}<|eot_id|>" for role, content in turns)
    return "<s>" + "".join(written) + "<|start_header_id|>assistant<|end_header_id|>\n\n"


def llama_2(messages):
    """Its marks are plain text, which joins what stands beside it."""
    system = f"<<SYS>>\n{messages[0].content}\n<</SYS>>\n\n" if messages[0].role == "system" else ""
    text, asked = "", system
    for message in messages:
        if message.role == "user":
            text, asked = f"{text}<s>[INST] {asked}{message.content} [/INST]", ""
        elif message.role == "assistant":
            text = f"{text} {message.content} </s>"
    return text


TEMPLATES = {"chatml": chatml, "llama_3": llama_3, "llama_2": llama_2}


def count(tokenizer, text):
    return len(tokenizer.encode(text, add_special_tokens=False))
