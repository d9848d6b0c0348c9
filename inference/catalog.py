"""The fleet as data: which models there are, and which replicas serve each."""

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import TypedDict
from urllib.parse import parse_qsl, urlsplit

from inference.exceptions import InvalidFleet, UnknownModel

AUTO = "auto"
MOST_NAME_CHARACTERS = 100
MOST_URL_CHARACTERS = 200
_EXAMPLE = "small=http://host:port,http://host:port;large=http://host:port"


class ServerKind(Enum):
    """Which protocol a replica speaks."""

    TGI = "tgi"
    OPENAI_COMPATIBLE = "openai"


SUPPOSED_PERMITS = 512
"""Of a replica that is not given any, and whose server does not say how many requests it takes."""
MOST_PERMITS = 100_000
MOST_REPLICA_WEIGHT = 1_000.0


@dataclass(frozen=True, slots=True)
class Replica:
    """One model server, known by its `url`, which has no trailing slash.

    `permits` is how many requests it is given at once, by all workers together, and never more than it says that it
    takes; `None` leaves it at that. `weight` is its share of the load beside
    its siblings; one that `is_draining` gets no new request.
    """

    url: str
    kind: ServerKind
    weight: float = 1.0
    permits: int | None = None
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

    @property
    def is_pinned(self) -> bool:
        """Whether it says what a server must run."""
        return bool(self.model_id or self.revision)


@dataclass(frozen=True, slots=True)
class Model:
    """What users choose, by its alias. `fallback` is the alias of a smaller model that may answer under load."""

    alias: str
    versions: tuple[ModelVersion, ...]
    fallback: str = ""

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """Every replica of every version; one that serves several of them once, as the first describes it."""
        found: dict[str, Replica] = {}
        for version in self.versions:
            for replica in version.replicas:
                found.setdefault(replica.url, replica)
        return tuple(found.values())


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
        allowed = list(dict.fromkeys([AUTO, *(model.alias for model in self.models)]))
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

    An address may end in what the replica is given, `#permits=8&weight=2`: a fragment, which no server is ever told.
    Raise `InvalidFleet`, naming the faulty part.
    """
    models = tuple(_parse_model(part.strip()) for part in text.split(";") if part.strip())
    if not models:
        raise InvalidFleet(f"MODEL_FLEET names no model; write for example {_EXAMPLE}.")
    aliases = [model.alias for model in models]
    _check_kinds(models)
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
    if not equals or alias == AUTO or not is_name(alias):
        raise InvalidFleet(f"MODEL_FLEET: {part!r} does not begin with a model's name and '='; write {_EXAMPLE}.")
    named = (_parse_replica(address.strip()) for address in addresses.split(",") if address.strip())
    replicas = tuple(dict.fromkeys(named))
    if not replicas:
        raise InvalidFleet(f"MODEL_FLEET: {alias} has no address; write {alias}=http://host:port.")
    return Model(alias, (ModelVersion(alias, replicas),))


def _parse_replica(address: str) -> Replica:
    is_openai = address.startswith("openai+")
    url, _, given = address.removeprefix("openai+").partition("#")
    if not is_server_address(url):
        raise InvalidFleet(f"MODEL_FLEET: {address!r} is not an address like http://host:port.")
    kind = ServerKind.OPENAI_COMPATIBLE if is_openai else ServerKind.TGI
    return Replica(url.rstrip("/"), kind, **_parse_given(address, given))


class _Given(TypedDict, total=False):
    permits: int
    weight: float


def _parse_given(address: str, text: str) -> _Given:
    given: _Given = {}
    try:
        for name, value in parse_qsl(text, keep_blank_values=True, strict_parsing=True) if text else ():
            match name:
                case "permits" if 1 <= int(value) <= MOST_PERMITS:
                    given["permits"] = int(value)
                case "weight" if 0 < float(value) <= MOST_REPLICA_WEIGHT:
                    given["weight"] = float(value)
                case _:
                    raise ValueError(name)
    except ValueError as error:
        raise InvalidFleet(
            f"MODEL_FLEET: {address!r} ends in something else than #permits=8&weight=2: permits are 1 to"
            f" {MOST_PERMITS:,}, a weight is a number above 0 and {MOST_REPLICA_WEIGHT:,.0f} at most."
        ) from error
    return given


def _check_kinds(models: tuple[Model, ...]) -> None:
    kinds: dict[str, ServerKind] = {}
    for replica in (replica for model in models for replica in model.replicas):
        if kinds.setdefault(replica.url, replica.kind) is not replica.kind:
            raise InvalidFleet(f"MODEL_FLEET names {replica.url!r} both with and without 'openai+'.")


def is_name(name: str) -> bool:
    """Say whether a model may be called so."""
    return len(name) <= MOST_NAME_CHARACTERS and name.replace("-", "").replace("_", "").replace(".", "").isalnum()


def is_server_address(url: str) -> bool:
    """Say whether a model server can be asked at this address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    is_written_well = len(url) <= MOST_URL_CHARACTERS and url.isprintable() and " " not in url
    return is_written_well and parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
