"""Tokenizers that lie on this machine as a `tokenizer.json`: loaded once per process, used in threads of their own.

Texts are tokenized one by one: given several, the package would take every core there is.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import structlog
from tokenizers import Tokenizer

log = structlog.get_logger(__name__)

_MOST_LOADED = 8
_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="tokenizer")


class BrokenTokenizer(Exception):
    """A file that is not there, or is no tokenizer. Its text says which."""


def is_file_name(tokenizer: str) -> bool:
    """Whether a version's tokenizer is a file; else it is only a name."""
    return tokenizer.endswith(".json") or tokenizer.startswith("/")


def load_file(path: str) -> Tokenizer:
    """Return the tokenizer in a file. Raise `BrokenTokenizer`."""
    if not Path(path).is_file():
        raise BrokenTokenizer(f"There is no file {path} on this machine.")
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:
        # The package raises nothing narrower.
        raise BrokenTokenizer(f"{path} is no tokenizer.json that can be loaded: {str(error)[:200]}") from error
    # A file may say how its model was trained.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


async def count_by_file(tokenizer: str, texts: Sequence[str]) -> list[int] | None:
    """Return how many tokens each text has; `None` where the tokenizer is no file, or one that does not load.

    The event loop is free meanwhile, also of the interpreter's lock.
    """
    if not is_file_name(tokenizer):
        return None
    return await asyncio.get_running_loop().run_in_executor(_threads, _count, tokenizer, texts)


def count_by_file_now(tokenizer: str, text: str, *, within_seconds: float) -> int | None:
    """Return the same of one text from synchronous code; `None` also where it is not known in time."""
    if not is_file_name(tokenizer):
        return None
    try:
        counts = _threads.submit(_count, tokenizer, [text]).result(within_seconds)
    except TimeoutError:
        return None
    return counts[0] if counts else None


def _count(path: str, texts: Sequence[str]) -> list[int] | None:
    tokenizer = _loaded(path, _changed_ns(path))
    if tokenizer is None:
        return None
    # Unlike `encode`, this gives up the interpreter's lock.
    return [len(tokenizer.encode_batch_fast([text], add_special_tokens=False)[0]) for text in texts]


def _changed_ns(path: str) -> int | None:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return None


@lru_cache(maxsize=_MOST_LOADED)
def _loaded(path: str, _changed_ns: int | None) -> Tokenizer | None:
    """Load a file once, until it is changed; say once that it is broken."""
    try:
        return load_file(path)
    except BrokenTokenizer as error:
        log.error("tokenizer_broken", tokenizer=path, error=str(error))
        return None
