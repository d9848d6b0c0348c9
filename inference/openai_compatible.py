"""One server that speaks OpenAI's chat protocol (vLLM, SGLang, llama.cpp), as the rest of the product sees it."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

import aiohttp

from inference.events import StreamEvent
from inference.messages import ChatMessage, ChatRequest
from inference.model_server import ServerInfo
from inference.server_load import ServerLoad
from inference.server_words import believed_limit, believed_name
from inference.tgi.answer import Dialect, stream_answer
from inference.tgi.client import messages_body, sampling_body
from inference.tgi.errors import Misbehaved
from inference.tgi.transport import DEFAULT_TIMEOUTS, LARGEST_INFO_BYTES, Timeouts, Transport
from inference.watch import Watch

# These servers merge tokens into one delta under load, keep stop strings to themselves, and continue a partial answer
# behind its last character, whitespace included, so that whitespace which they write is new.
_DIALECT = Dialect(has_a_token_per_delta=False, writes_stop_strings=False, trims_a_partial_answer=False)


class OpenAICompatibleClient:
    """Chats with one server, over a session that the caller owns. `base_url` may end in `/v1`."""

    def __init__(
        self,
        base_url: str,
        *,
        session: aiohttp.ClientSession,
        api_key: str | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self._transport = Transport(
            base_url.rstrip("/").removesuffix("/v1"),
            session=session,
            api_key=api_key,
            timeouts=_without_keep_alives(timeouts),
        )

    def stream_chat(self, request: ChatRequest, watch: Watch | None = None) -> AsyncGenerator[StreamEvent]:
        """See `ModelServer`. Pieces count tokens where the server reports usage continuously (vLLM, SGLang)."""
        return stream_answer(
            self._transport, "/v1/chat/completions", _chat_body(request), request=request, dialect=_DIALECT, watch=watch
        )

    async def is_healthy(self) -> bool:
        """See `ModelServer`."""
        return await self._transport.is_healthy()

    async def load(self) -> ServerLoad | None:
        """See `ModelServer`."""
        return await self._transport.load()

    async def info(self, wanted_id: str = "") -> ServerInfo:
        """See `ModelServer`. The context length is vLLM's and SGLang's `max_model_len`, or llama.cpp's `meta.n_ctx`."""
        answer = await self._transport.call_json("GET", "/v1/models", limit_bytes=LARGEST_INFO_BYTES)
        listed = answer.get("data")
        rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
        models = {name: row for row in rows if (name := believed_name(row.get("id")))}
        if not models:
            raise Misbehaved("/v1/models lists no model")
        # LoRA adapters are listed beside their base model.
        model_id = wanted_id if wanted_id in models else next(iter(models))
        model = models[model_id]
        meta = model.get("meta")
        window = model.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else None)
        return ServerInfo(
            model_id=model_id,
            model_sha=None,
            version=None,
            max_input_tokens=None,
            max_total_tokens=believed_limit(window),
            max_concurrent_requests=None,
        )

    async def count_tokens(self, messages: Sequence[ChatMessage], *, model: str | None = None) -> int:
        """See `ModelServer`. vLLM tokenizes messages; llama.cpp renders and tokenizes them in two steps."""
        body: dict[str, object] = {"messages": messages_body(messages), **_continuation(messages)}
        if model is not None:
            body["model"] = model
        count = (await self._transport.call_json("POST", "/tokenize", body)).get("count")
        if isinstance(count, int):
            return count
        rendered = (await self._transport.call_json("POST", "/apply-template", body)).get("prompt")
        step = {"content": rendered, "add_special": True, "parse_special": True}
        return _listed(await self._transport.call_json("POST", "/tokenize", step))

    async def count_text(self, text: str) -> int:
        """See `ModelServer`. vLLM and SGLang read the first two fields, llama.cpp the others."""
        if not text:
            return 0
        body: dict[str, object] = {
            "prompt": text,
            "add_special_tokens": False,
            "content": text,
            "add_special": False,
            "parse_special": True,
        }
        return _listed(await self._transport.call_json("POST", "/tokenize", body))


def _listed(answer: dict[str, object]) -> int:
    tokens = answer.get("tokens")
    if not isinstance(tokens, list):
        raise Misbehaved("/tokenize lists no tokens")
    return len(tokens)


def _without_keep_alives(timeouts: Timeouts) -> Timeouts:
    """Most of these servers are silent while a request waits, so silence means no more than the lack of a token."""
    longest = max(timeouts.read_seconds, timeouts.first_token_seconds, timeouts.token_seconds)
    return replace(timeouts, read_seconds=longest)


def _chat_body(request: ChatRequest) -> dict[str, object]:
    body: dict[str, object] = {
        "messages": messages_body(request.messages),
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        # llama.cpp notices a closed connection only when it writes; without this it finishes a long prefill for nobody.
        "return_progress": True,
        **sampling_body(request.options),
        **_continuation(request.messages),
    }
    if request.model is not None:
        body["model"] = request.model
    return body


def _continuation(messages: Sequence[ChatMessage]) -> dict[str, object]:
    """What makes a server continue a last message of role assistant.

    vLLM needs both fields, SGLang the first; llama.cpp needs neither, for it always continues such a message.
    """
    if messages[-1].role != "assistant":
        return {}
    return {"continue_final_message": True, "add_generation_prompt": False}
