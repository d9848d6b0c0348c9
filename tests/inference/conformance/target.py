"""A server under test, by its URL, and what is known of it."""

import json
from dataclasses import dataclass
from typing import Any

from tests.inference.conformance.raw_http import Connection, RawResponse, get, open_post, post


@dataclass(frozen=True)
class Target:
    """`is_twin` lets a test assert exact texts; of a real model it can assert the form only."""

    name: str
    url: str
    permits: int | None = None
    """Known where the server was started for the tests, so that they may use it up."""

    @property
    def is_twin(self) -> bool:
        return self.name == "twin"

    @property
    def brief(self) -> str:
        """A user message whose answer ends by itself."""
        return '@twin {"text": "Yes."}' if self.is_twin else "Answer with the single word yes."

    @property
    def endless(self) -> str:
        """A user message whose answer outlasts every limit that the tests set."""
        return '@twin {"tokens": 9000, "token_ms": 5}' if self.is_twin else "Count from 1 to 5000, all in digits."

    @property
    def multibyte(self) -> str:
        """A user message whose answer has characters of several tokens."""
        if self.is_twin:
            return '@twin {"text": "🤗😄👨\u200d👩 我很好 기"}'
        return "Repeat exactly: 🤗😄👨‍👩 我很好 기"

    async def get(self, path: str) -> RawResponse:
        return await get(self.url, path)

    async def post(self, path: str, body: object, **more: Any) -> RawResponse:
        return await post(self.url, path, body, timeout=100, **more)

    async def open(self, path: str, body: object) -> Connection:
        """A stream whose headers have come."""
        connection = await open_post(self.url, path, body)
        await connection.read_head()
        return connection

    async def info(self) -> dict[str, Any]:
        return (await self.get("/info")).json()

    async def prompt(self, user: str) -> str:
        """The message as the server's own template renders it."""
        response = await self.post("/chat_tokenize", {"messages": [{"role": "user", "content": user}]})
        return response.json()["templated_text"]

    async def generate(self, user: str, /, path: str = "/generate", **parameters: Any) -> RawResponse:
        return await self.post(path, {"inputs": await self.prompt(user), "parameters": parameters})

    async def chat(self, user: str, /, **more: Any) -> RawResponse:
        body = {"messages": [{"role": "user", "content": user}], "temperature": 0, "max_tokens": 16, **more}
        return await self.post("/v1/chat/completions", body)

    async def load(self) -> dict[str, float]:
        """The gauges and counters of /metrics without labels; absent ones are absent."""
        lines = (await self.get("/metrics")).text.splitlines()
        rows = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#") and "{" not in line)
        return {name: float(value) for name, value in rows}

    async def until_idle(self) -> None:
        """Return once nothing runs and nothing waits. Every look is a request, so there is nothing to sleep for."""
        while True:
            load = await self.load()
            if not load.get("tgi_batch_current_size") and not load.get("tgi_queue_size"):
                return


def chat_body(user: str, /, **more: Any) -> dict[str, Any]:
    """A streamed, greedy chat request."""
    return {"messages": [{"role": "user", "content": user}], "stream": True, "temperature": 0, "max_tokens": 16, **more}


def contents(frames: list[dict[str, Any]]) -> str:
    """What a reader of a chat stream sees."""
    return "".join(choice["delta"].get("content") or "" for frame in frames for choice in frame["choices"])


def compact(value: object) -> str:
    """JSON as the server should have written it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
