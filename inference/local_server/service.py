"""What every route needs: the model, its engine, the limits and the counters."""

from dataclasses import dataclass, field

from aiohttp import web

from inference.local_server.chat_template import ChatTemplate
from inference.local_server.engine import Engine
from inference.local_server.generation import Generator
from inference.local_server.load import Load
from inference.local_server.local_models import LocalModel
from inference.local_server.metrics import Metrics
from inference.local_server.validation import Limits

VERSION = "3.3.6-dev0"
"""The TGI version whose protocol this server speaks."""

COMPUTE_TYPE = "cpu"


@dataclass(frozen=True, slots=True)
class Service:
    """One served model."""

    model: LocalModel
    engine: Engine
    generator: Generator
    load: Load
    limits: Limits
    template: ChatTemplate
    keep_alive_seconds: float
    metrics: Metrics = field(default_factory=Metrics)

    @property
    def fingerprint(self) -> str:
        return f"{VERSION}-native"


SERVICE = web.AppKey("service", Service)
