"""The HTTP connection to one model server: opening, closing, and naming what failed."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Literal

import aiohttp
import orjson

from inference.server_load import ServerLoad, parse_load
from inference.tgi.errors import (
    InvalidRequest,
    Misbehaved,
    ModelServerError,
    Stalled,
    Unreachable,
    error_of_response,
)
from inference.watch import Watch

_OK = 200
_CALL_SECONDS = 10
_LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
_LARGEST_ERROR_BYTES = 64 * 1024
_LARGEST_METRICS_BYTES = 2 * 1024 * 1024
LARGEST_INFO_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for a model server; there is no limit on a whole answer.

    `read_seconds` bounds silence on the connection and must exceed the 15 s between TGI's keep-alives. The last two
    bound the wait for text, whatever keep-alives arrive: for the first, which includes queue and prefill, and for each
    later one, which may include TGI queueing a long answer again every 1024 tokens.
    """

    connect_seconds: float = 2
    read_seconds: float = 45
    first_token_seconds: float = 120
    token_seconds: float = 60


DEFAULT_TIMEOUTS = Timeouts()


@dataclass(slots=True)
class _Attempt:
    """One try to send a request."""

    uses_kept_connection: bool = False


@asynccontextmanager
async def model_session() -> AsyncIterator[aiohttp.ClientSession]:
    """The session for all the model servers of one event loop. Admission is not its business: it limits nothing."""
    tracing = aiohttp.TraceConfig()
    tracing.on_connection_reuseconn.append(_note_kept_connection)
    async with aiohttp.ClientSession(
        trace_configs=[tracing],
        connector=aiohttp.TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=15, ttl_dns_cache=60),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        # A compressing proxy would hand over tokens in clumps.
        headers={"Accept-Encoding": "identity"},
    ) as session:
        yield session


class Transport:
    """Requests to one server over a session that someone else owns."""

    def __init__(
        self, base_url: str, *, session: aiohttp.ClientSession, api_key: str | None, timeouts: Timeouts
    ) -> None:
        self.timeouts = timeouts
        self._base_url = base_url.rstrip("/")
        self._session = session
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    @asynccontextmanager
    async def open_stream(
        self, path: str, body: dict[str, object], *, request_id: str, deadline: float, watch: Watch
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Posts `body` and gives the response, an event stream. Leaving the block closes the connection.

        `deadline`, in the event loop's time, bounds the wait for the answer's headers only. While the block lasts,
        what abandons the request is the business of whoever reads the response.

        To close it is the only way to make a model server stop. A connection whose answer was read to its end is
        kept for the next request instead.
        """
        try:
            async with asyncio.timeout_at(deadline) as limit:
                watch.stop_with(lambda: limit.reschedule(asyncio.get_running_loop().time()))
                response = await self._send("POST", path, body, request_id=request_id)
        except TimeoutError as error:
            raise Stalled(f"no answer from {path} in time") from error
        finally:
            watch.stop_with(None)
        try:
            if response.content_type != "text/event-stream":
                raise Misbehaved(f"the stream has the content type {response.content_type}")
            yield response
        finally:
            watch.stop_with(None)
            response.close()

    async def call(
        self,
        method: Literal["GET", "POST"],
        path: str,
        body: dict[str, object] | None = None,
        *,
        limit_bytes: int = _LARGEST_ANSWER_BYTES,
    ) -> bytes:
        """The body of a short answer. Raises `ModelServerError` for any status but 200, or where it is too long."""
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                response = await self._send(method, path, body)
                try:
                    return await _read_whole(response, limit_bytes)
                finally:
                    response.close()
        except TimeoutError as error:
            raise Stalled(f"no answer from {path} within {_CALL_SECONDS} s") from error

    async def call_json(
        self,
        method: Literal["GET", "POST"],
        path: str,
        body: dict[str, object] | None = None,
        *,
        limit_bytes: int = _LARGEST_ANSWER_BYTES,
    ) -> dict[str, object]:
        """Like `call`, for answers that must be a JSON object."""
        try:
            answer = orjson.loads(await self.call(method, path, body, limit_bytes=limit_bytes))
        except orjson.JSONDecodeError as error:
            raise Misbehaved(f"the answer of {path} is not JSON") from error
        if not isinstance(answer, dict):
            raise Misbehaved(f"the answer of {path} is not a JSON object")
        return answer

    async def is_healthy(self) -> bool:
        """Whether `/health` says so."""
        try:
            await self.call("GET", "/health")
        except ModelServerError:
            return False
        return True

    async def load(self) -> ServerLoad | None:
        """What `/metrics` says of the server's load."""
        return parse_load(await self.call("GET", "/metrics", limit_bytes=_LARGEST_METRICS_BYTES))

    async def _send(
        self, method: str, path: str, body: dict[str, object] | None, *, request_id: str | None = None
    ) -> aiohttp.ClientResponse:
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        if request_id is not None:
            headers["X-Request-ID"] = request_id
        response = await self._request(method, path, None if body is None else _encode(body), headers)
        if response.status == _OK:
            return response
        try:
            raise error_of_response(response.status, await _read_whole(response, _LARGEST_ERROR_BYTES))
        finally:
            response.close()

    async def _request(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> aiohttp.ClientResponse:
        while True:
            attempt = _Attempt()
            try:
                return await self._session.request(
                    method,
                    self._base_url + path,
                    # aiohttp writes plain `bytes` of more than 1 MiB in one go and warns about it.
                    data=None if body is None else io.BytesIO(body),
                    headers=headers,
                    timeout=self._client_timeout(),
                    allow_redirects=False,
                    trace_request_ctx=attempt,
                )
            except (aiohttp.ClientError, OSError) as error:
                # A server may close a kept connection (llama.cpp does after each answer) just as a request goes out.
                # That says nothing about the server; the pool has one such connection less, so this ends.
                is_stale = attempt.uses_kept_connection and not isinstance(error, TimeoutError)
                if not is_stale:
                    raise name_failure(error, broken=Unreachable) from error

    def _client_timeout(self) -> aiohttp.ClientTimeout:
        connect, read = self.timeouts.connect_seconds, self.timeouts.read_seconds
        return aiohttp.ClientTimeout(total=None, connect=connect, sock_connect=connect, sock_read=read)


def name_failure(error: Exception, *, broken: type[ModelServerError]) -> ModelServerError:
    """What a failure of the HTTP client means; `broken` is what a lost connection means at this moment."""
    words = f"{type(error).__name__}: {error}"
    match error:
        case aiohttp.ConnectionTimeoutError():
            return Unreachable(words)
        case TimeoutError():
            return Stalled(words)
        case aiohttp.ClientResponseError():
            return Misbehaved(words)
        case _:
            return broken(words)


async def _note_kept_connection(
    session: aiohttp.ClientSession, context: SimpleNamespace, params: aiohttp.TraceConnectionReuseconnParams
) -> None:
    attempt = context.trace_request_ctx
    if isinstance(attempt, _Attempt):
        attempt.uses_kept_connection = True


def _encode(body: dict[str, object]) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError as error:
        raise InvalidRequest("the request is not valid Unicode") from error


async def _read_whole(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    parts, size = [], 0
    try:
        while part := await response.content.readany():
            parts.append(part)
            size += len(part)
            if size > limit_bytes:
                raise Misbehaved(f"an answer is longer than {limit_bytes} bytes")
    except (aiohttp.ClientError, OSError) as error:
        raise name_failure(error, broken=Unreachable) from error
    return b"".join(parts)
