"""The fleet as data: which models there are, and which replicas serve each."""

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from urllib.parse import urlsplit

from django.conf import settings

from inference.exceptions import InvalidFleet, UnknownModel

AUTO = "auto"
_EXAMPLE = "small=http://host:port,http://host:port;large=http://host:port"


class ServerKind(Enum):
    """Which protocol a replica speaks."""

    TGI = "tgi"
    OPENAI_COMPATIBLE = "openai"


DEFAULT_PERMITS = 32


@dataclass(frozen=True, slots=True)
class Replica:
    """One model server, known by its `url`, which has no trailing slash.

    `permits` is how many requests it is given at once, by all workers together; `weight` its share of the load beside
    its siblings; one that `is_draining` gets no new request.
    """

    url: str
    kind: ServerKind
    weight: float = 1.0
    permits: int = DEFAULT_PERMITS
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, in the site's currency: read, read from the prefix cache, written."""

    tokens_in: Decimal = Decimal(0)
    tokens_cached: Decimal = Decimal(0)
    tokens_out: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can do beside writing text."""

    tools: bool = False
    vision: bool = False
    reasoning: bool = False


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """One pinned model. Empty or `None` means: as the server says, or no limit of our own.

    A replica whose `/info` says another `model_id` or `revision` (`model_sha`) is refused. `weight` is the version's
    share of an alias's conversations.
    """

    name: str
    replicas: tuple[Replica, ...]
    weight: int = 100
    model_id: str = ""
    revision: str = ""
    context_tokens: int | None = None
    max_answer_tokens: int | None = None
    tokenizer: str = ""
    prices: Prices = Prices()
    capabilities: Capabilities = Capabilities()


@dataclass(frozen=True, slots=True)
class Model:
    """What users choose, by its alias. `fallback` is the alias of a smaller model that may answer under load."""

    alias: str
    versions: tuple[ModelVersion, ...]
    fallback: str = ""

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """Every replica of every version, once."""
        return tuple(dict.fromkeys(replica for version in self.versions for replica in version.replicas))


@dataclass(frozen=True, slots=True)
class Catalog:
    """All models, in the order in which they were named."""

    models: tuple[Model, ...]
    default_alias: str

    def find(self, alias: str | None) -> Model:
        """Return the model of this alias; `None`, empty and `auto` mean the default. Raise `UnknownModel`."""
        wanted = self.default_alias if not alias or alias == AUTO else alias
        for model in self.models:
            if model.alias == wanted:
                return model
        allowed = [AUTO, *(model.alias for model in self.models)]
        raise UnknownModel(
            f"There is no model {wanted!r} here. Choose one of: {', '.join(allowed)}.",
            param="model",
            details={"allowed": allowed},
        )

    def replicas(self) -> tuple[Replica, ...]:
        """Return every replica once."""
        return tuple(dict.fromkeys(replica for model in self.models for replica in model.replicas))


def parse_fleet(text: str, default_alias: str = "") -> Catalog:
    """Read `MODEL_FLEET`: `alias=url,url;alias=url`, where `openai+http://…` is an OpenAI-compatible server.

    Raise `InvalidFleet`, naming the faulty part.
    """
    models = tuple(_parse_model(part.strip()) for part in text.split(";") if part.strip())
    if not models:
        raise InvalidFleet(f"MODEL_FLEET names no model; write for example {_EXAMPLE}.")
    aliases = [model.alias for model in models]
    if repeated := {alias for alias in aliases if aliases.count(alias) > 1}:
        raise InvalidFleet(f"MODEL_FLEET names {', '.join(sorted(repeated))} more than once.")
    if default_alias and default_alias not in aliases:
        raise InvalidFleet(
            f"DEFAULT_MODEL is {default_alias!r}, which MODEL_FLEET does not name: {', '.join(aliases)}."
        )
    return Catalog(models, default_alias or aliases[0])


def _parse_model(part: str) -> Model:
    alias, equals, addresses = part.partition("=")
    alias = alias.strip()
    if (
        not equals
        or not alias
        or alias == AUTO
        or not alias.replace("-", "").replace("_", "").replace(".", "").isalnum()
    ):
        raise InvalidFleet(f"MODEL_FLEET: {part!r} does not begin with a model's name and '='; write {_EXAMPLE}.")
    replicas = tuple(_parse_replica(address.strip()) for address in addresses.split(",") if address.strip())
    if not replicas:
        raise InvalidFleet(f"MODEL_FLEET: {alias} has no address; write {alias}=http://host:port.")
    return Model(alias, (ModelVersion(alias, replicas),))


def _parse_replica(address: str) -> Replica:
    is_openai = address.startswith("openai+")
    url = address.removeprefix("openai+")
    try:
        parts = urlsplit(url)
        is_usable = (
            parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        is_usable = False
    if not is_usable:
        raise InvalidFleet(f"MODEL_FLEET: {address!r} is not an address like http://host:port.")
    return Replica(url.rstrip("/"), ServerKind.OPENAI_COMPATIBLE if is_openai else ServerKind.TGI)


@lru_cache(maxsize=4)
def _parsed(text: str, default_alias: str) -> Catalog:
    return parse_fleet(text, default_alias)


def current_catalog() -> Catalog:
    """Return the fleet that the settings name."""
    return _parsed(settings.MODEL_FLEET, settings.DEFAULT_MODEL)
