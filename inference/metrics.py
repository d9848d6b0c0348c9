"""The numbers about the making of answers. Who does the thing counts it; `/metrics` tells them all.

Labels come from the catalogue, from code and from nowhere else, so that no caller can make new ones: `model` is the
alias, `version` the version's name, `replica` host and port.
"""

import time
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from prometheus_client import Counter, Gauge, Histogram

_WAIT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
# Few where there is a series for each replica: a thousand of them are read in one go.
_PREFILL_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30)
_TOKEN_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 2, 10)
_TOKENS_PER_SAMPLE: Final = 16

# Waiting --------------------------------------------------------------------------------------------------------------

QUEUE_WAIT = Histogram(
    "chat_queue_wait_seconds",
    "From a message's acceptance to its first claim by a worker.",
    ["model", "priority_class"],
    buckets=_WAIT_BUCKETS,
)
TIME_TO_FIRST_TOKEN = Histogram(
    "chat_time_to_first_token_seconds",
    "From a message's acceptance to the first token of its answer.",
    ["model", "version", "priority_class"],
    buckets=_WAIT_BUCKETS,
)
SERVER_TIME_TO_FIRST_TOKEN = Histogram(
    "chat_server_time_to_first_token_seconds",
    "From the request to a replica to its first token.",
    ["model", "version", "replica"],
    buckets=_PREFILL_BUCKETS,
)
INTER_TOKEN = Histogram(
    "chat_inter_token_seconds",
    f"From one token of a replica's answer to the next; one in {_TOKENS_PER_SAMPLE} is measured.",
    ["model", "version", "replica"],
    buckets=_TOKEN_BUCKETS,
)
QUEUE_LENGTH = Gauge(
    "chat_queue_length",
    "Messages that wait for a model server.",
    ["model", "priority_class"],
    multiprocess_mode="livemostrecent",
)

# Answers --------------------------------------------------------------------------------------------------------------

ANSWERS = Counter("chat_answers", "Answers that ended, by why.", ["model", "version", "finish_reason"])
ANSWERS_UNDER_WAY = Gauge("chat_answers_under_way", "Answers in the workers' hands.", multiprocess_mode="livesum")
TOKENS = Counter(
    "chat_tokens", "Tokens of answers that ended: in, cached (a part of in), out.", ["model", "version", "kind"]
)
CANCELS = Counter("chat_cancels", "Answers that were stopped: while queued, or while running.", ["stage"])
CACHE_LOOKUPS = Counter("chat_answer_cache_lookups", "Prompts that were looked up in the answer cache.", ["result"])
CONTEXT_CACHE = Counter("chat_context_cache", "Histories that were looked up in the context cache.", ["result"])
RESUMED = Counter("chat_resumed_attempts", "Answers that a worker went on with after another had left them.", ["model"])

# Overload -------------------------------------------------------------------------------------------------------------

SHEDS = Counter("chat_sheds", "Messages that were refused at the door.", ["model", "priority_class"])
DEGRADATIONS = Counter(
    "chat_degradations", "Messages that were admitted with less than was asked for.", ["priority_class", "step"]
)

# Replicas -------------------------------------------------------------------------------------------------------------

FAILOVERS = Counter(
    "chat_failovers", "Tries that failed at a replica, by the error's code.", ["model", "replica", "code"]
)
FOLLOW_UPS = Counter(
    "chat_follow_ups",
    "Follow-up turns, by whether they went to a replica that holds their prefix.",
    ["model", "warmth"],
)
PREFIX_BLOCKS = Counter(
    "chat_prefix_blocks", "Blocks of prompts, by whether the chosen replica holds them.", ["model", "held"]
)
PERMITS_HELD = Gauge(
    "chat_permits_held", "Requests that all workers have at a replica.", ["replica"], multiprocess_mode="livemostrecent"
)
PERMITS_CAPACITY = Gauge(
    "chat_permits_capacity",
    "Requests that a replica may be given now.",
    ["replica"],
    multiprocess_mode="livemostrecent",
)
REPLICAS = Gauge("chat_replicas", "Replicas by state.", ["model", "state"], multiprocess_mode="livemostrecent")
PROBES = Counter("chat_probes", "Probes of replicas.", ["replica", "result"])
EJECTIONS = Counter("chat_ejections", "Replicas that were put out of service, by why.", ["replica", "reason"])


@lru_cache(maxsize=4096)
def replica_label(url: str) -> str:
    """Return a replica's host and port, and path where it has one; never what stands before an `@`."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] + parts.path.rstrip("/")


class TokenPace:
    """Measures one try: from the request, when this is made, to the first token, and on to the next ones.

    One observation costs microseconds, too much for each of ten thousand tokens a second: one gap in
    `_TOKENS_PER_SAMPLE` is measured.
    """

    __slots__ = ("_before", "_count", "_labels")

    def __init__(self, *, model: str, version: str, url: str) -> None:
        self._labels = model, version, replica_label(url)
        self._count = 0
        self._before = time.perf_counter()

    def token(self) -> None:
        """Note that a token came."""
        phase = self._count % _TOKENS_PER_SAMPLE
        if phase < 2:
            self._look_at_the_clock(is_second=phase == 1)
        self._count += 1

    def _look_at_the_clock(self, *, is_second: bool) -> None:
        now = time.perf_counter()
        if is_second:
            INTER_TOKEN.labels(*self._labels).observe(now - self._before)
        elif self._count == 0:
            SERVER_TIME_TO_FIRST_TOKEN.labels(*self._labels).observe(now - self._before)
        self._before = now
