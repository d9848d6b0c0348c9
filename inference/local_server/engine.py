"""The inference engine (llama.cpp) inside this process, reached over its loopback HTTP server."""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import xllamacpp

from inference.local_server.bodies import JsonObject
from inference.local_server.engine_frames import FrameReader
from inference.local_server.errors import GenerationError, IncompleteError
from inference.local_server.tokens import EngineEvent, Piece

_READ_BUFFER_BYTES = 4 * 1024 * 1024
_BATCH_TOKENS = 128  # a longer batch stalls the other streams during a prefill, and is no faster


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How much of the machine the engine may use."""

    weights: Path
    threads: int
    parallel: int
    window_tokens: int = 4096
    cache_megabytes: int = 512


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """The chat template of the loaded model and the texts of its first and last token."""

    template: str
    bos_token: str
    eos_token: str


class RunningEngine:
    """The loaded model. Lives until its last reference goes; its threads end with it."""

    def __init__(self, settings: EngineSettings) -> None:
        self.api_key = secrets.token_hex(16)
        self._server = xllamacpp.Server(_engine_parameters(settings, self.api_key))
        self.url: str = self._server.listening_address


class Engine:
    """Asks the running engine. Each completion has a connection of its own: closing it is how one is cancelled."""

    def __init__(self, url: str, session: aiohttp.ClientSession, template: TemplateSource) -> None:
        self._url = url
        self._session = session
        self.template = template
        self._special_texts: dict[int, str] = {}

    async def tokenize(self, text: str, *, add_special: bool) -> list[Piece]:
        body = {"content": text, "add_special": add_special, "parse_special": True, "with_pieces": True}
        answer = await self._ask("/tokenize", body)
        return [Piece(token["id"], _raw_bytes(token["piece"])) for token in answer["tokens"]]

    async def special_text(self, token_id: int) -> str:
        """How a control token is written, `<|im_end|>` for instance."""
        if token_id not in self._special_texts:
            answer = await self._ask("/detokenize", {"tokens": [token_id]})
            self._special_texts[token_id] = answer["content"]
        return self._special_texts[token_id]

    async def complete(
        self, prompt_ids: list[int], options: JsonObject, *, with_alternatives: bool
    ) -> AsyncGenerator[EngineEvent]:
        """Writes on from the prompt. Closing the iterator frees the slot at the engine's next step."""
        body = options | {
            "prompt": prompt_ids,
            "stream": True,
            "cache_prompt": True,
            "return_tokens": True,
            # Frames during the prefill let the engine notice a closed connection before the first token.
            "return_progress": True,
        }
        reader = FrameReader(self, with_alternatives=with_alternatives)
        try:
            async with self._session.post(f"{self._url}/completion", json=body) as response:
                if response.status != 200:
                    raise GenerationError(_complaint(await response.read()))
                async for line in response.content:
                    if line.startswith(b"data: "):
                        for event in await reader.read(orjson.loads(line[6:])):
                            yield event
        except aiohttp.ClientError as error:
            raise GenerationError(f"the engine's connection broke ({type(error).__name__})") from error
        if not reader.has_ended:
            raise IncompleteError

    async def require_health(self) -> None:
        """Raises `aiohttp.ClientError` when the engine does not answer."""
        async with self._session.get(f"{self._url}/health", raise_for_status=True):
            return

    async def _ask(self, path: str, body: JsonObject) -> JsonObject:
        try:
            async with self._session.post(self._url + path, json=body) as response:
                answer = await response.read()
        except aiohttp.ClientError as error:
            raise GenerationError(f"the engine's connection broke ({type(error).__name__})") from error
        if response.status != 200:
            raise GenerationError(_complaint(answer))
        parsed: JsonObject = orjson.loads(answer)
        return parsed


@asynccontextmanager
async def connect(running: RunningEngine) -> AsyncIterator[Engine]:
    """An `Engine` with its own session, for the event loop that asks."""
    session = aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {running.api_key}"},
        timeout=aiohttp.ClientTimeout(total=None),
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        json_serialize=lambda value: orjson.dumps(value).decode(),
        read_bufsize=_READ_BUFFER_BYTES,
    )
    async with session:
        async with session.get(f"{running.url}/props") as response:
            props = await response.json()
        template = TemplateSource(props["chat_template"], props["bos_token"], props["eos_token"])
        yield Engine(running.url, session, template)


def _engine_parameters(settings: EngineSettings, api_key: str) -> xllamacpp.CommonParams:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(settings.weights)
    parameters.n_parallel = settings.parallel
    parameters.n_ctx = settings.window_tokens * settings.parallel
    parameters.n_batch = parameters.n_ubatch = _BATCH_TOKENS
    for processor in (parameters.cpuparams, parameters.cpuparams_batch):
        processor.n_threads = settings.threads
        processor.poll = 0  # threads that spin for each other slow everything to a crawl on a busy machine
    parameters.cache_ram_mib = settings.cache_megabytes
    parameters.api_keys = [api_key]
    parameters.hostnames = ["127.0.0.1"]
    parameters.cors_origins = ""
    parameters.ui = False
    parameters.offline = True
    parameters.endpoint_slots = parameters.endpoint_props = True
    parameters.verbosity = 1  # errors only; its chatter would repeat message text
    return parameters


def _raw_bytes(piece: Any) -> bytes:
    """The engine writes a piece that is no valid UTF-8 as a list of its bytes."""
    return bytes(piece) if isinstance(piece, list) else str(piece).encode()


def _complaint(body: bytes) -> str:
    try:
        return str(orjson.loads(body)["error"]["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "the engine refused the request"
