"""What a twin can be told: its limits, its token clock and the server version whose shapes it shows."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

type Dialect = Literal["tgi", "openai"]


class UnknownSettingError(ValueError):
    """A setting that does not exist, or a value of the wrong type."""


@dataclass(frozen=True, slots=True)
class TwinSettings:
    """`batch_size` bounds what runs at once, `permits` what runs and waits; `None` lets every permit run."""

    host: str = "127.0.0.1"
    port: int = 0
    model_id: str = "twin"
    token_ms: float = 20.0
    prefill_ms: float = 50.0
    answer_tokens: int = 64
    permits: int = 128
    batch_size: int | None = None
    max_input_tokens: int = 16_383
    max_total_tokens: int = 16_384
    keep_alive_ms: float = 15_000.0
    payload_limit: int = 2_000_000
    api_key: str | None = None
    tgi_version: str = "3.3.7"
    dialect: Dialect = "tgi"
    repeats: str | None = None
    """What a prompt without a directive is answered with: those of its lines that contain this."""
    firings_dir: str | None = None
    """Twins that share this directory count together how often a prompt's fault has struck."""

    @property
    def version(self) -> tuple[int, ...]:
        """The version as numbers, to compare with the version that changed a shape."""
        return tuple(int(part) for part in self.tgi_version.split("-")[0].split("."))

    def changed(self, changes: dict[str, Any]) -> "TwinSettings":
        """A copy with `changes`, each checked for its name and for the type that the present value has."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in changes.items():
            if name not in known:
                raise UnknownSettingError(f"no setting is called {name}")
            if isinstance(known[name], float | int) and not isinstance(value, float | int):
                raise UnknownSettingError(f"{name} must be a number")
        return replace(self, **changes)
