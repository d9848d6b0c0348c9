"""Asking a client for an answer in one line."""

from contextlib import aclosing

from inference.events import Finished, Piece, Reasoning
from inference.messages import ChatMessage, ChatRequest, SamplingOptions


def request(*contents: str, partial: str | None = None, max_new_tokens: int = 100, **options) -> ChatRequest:
    messages = [ChatMessage("user", content) for content in contents or ("Hello",)]
    if partial is not None:
        messages.append(ChatMessage("assistant", partial))
    return ChatRequest(tuple(messages), SamplingOptions(max_new_tokens, **options), request_id="request-1")


async def ask(client, chat_request: ChatRequest | None = None) -> list:
    async with aclosing(client.stream_chat(chat_request or request())) as events:
        return [event async for event in events]


def text_of(events) -> str:
    return "".join(event.text for event in events if isinstance(event, Piece))


def thoughts_of(events) -> str:
    return "".join(event.text for event in events if isinstance(event, Reasoning))


def finish_of(events) -> Finished:
    finished = [event for event in events if isinstance(event, Finished)]
    assert finished == events[-1:]
    return finished[0]
