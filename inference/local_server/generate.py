"""TGI's own routes: `/`, `/generate`, `/generate_stream` and `/tokenize`."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

import orjson
from aiohttp import web

from inference.local_server.bodies import JsonObject, read_fields
from inference.local_server.errors import RequestError
from inference.local_server.frames import event, float32, send_events
from inference.local_server.parameters import GenerateBody, read_generate_body
from inference.local_server.service import SERVICE, Service
from inference.local_server.timing_headers import stream_headers, timing_headers
from inference.local_server.tokens import AlternativeToken, Ending, Step, Token
from inference.local_server.validation import check_best_of, check_streamable


@dataclass(frozen=True, slots=True)
class Answer:
    """All the tokens of one answer."""

    tokens: tuple[Token, ...]
    ending: Ending

    @property
    def mean_logprob(self) -> float:
        return sum(token.logprob or 0.0 for token in self.tokens) / len(self.tokens)


async def generate(request: web.Request) -> web.StreamResponse:
    """POST /generate: one JSON object."""
    return await _whole(request, read_generate_body(await read_fields(request)), in_array=False)


async def generate_stream(request: web.Request) -> web.StreamResponse:
    """POST /generate_stream: one event per token."""
    return await _streamed(request, read_generate_body(await read_fields(request)))


async def compatible(request: web.Request) -> web.StreamResponse:
    """POST /: like one of the other two, by `stream`. Unless told otherwise it repeats the prompt, as TGI does here."""
    body = read_generate_body(await read_fields(request))
    if body.parameters.return_full_text is None:
        body = replace(body, parameters=replace(body.parameters, return_full_text=True))
    return await (_streamed(request, body) if body.stream else _whole(request, body, in_array=True))


async def tokenize(request: web.Request) -> web.StreamResponse:
    """POST /tokenize: the tokens of `inputs` with their byte offsets."""
    body = read_generate_body(await read_fields(request))
    return json_response(await token_list(request.app[SERVICE], body.inputs, add_special=True))


async def token_list(service: Service, text: str, *, add_special: bool) -> list[JsonObject]:
    """Every token with the bytes it covers; a part of a character covers the whole character."""
    raw = text.encode()
    listed = []
    end = 0
    for piece in await service.engine.tokenize(text, add_special=add_special):
        start, end = end, end + len(piece.raw)
        first, last = _character_bounds(raw, start, end)
        listed.append({"id": piece.id, "text": raw[first:last].decode(), "start": first, "stop": last})
    return listed


def json_response(value: object, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json", headers=headers)


async def collect(service: Service, steps: AsyncGenerator[Step]) -> Answer:
    """Waits for the whole answer."""
    tokens = []
    async with aclosing(steps):
        async for step in steps:
            tokens.append(step.token)
            if step.ending is not None:
                service.metrics.finished(step.ending)
                return Answer(tuple(tokens), step.ending)
    raise AssertionError("a generation ends with an ending or raises")


async def _whole(request: web.Request, body: GenerateBody, *, in_array: bool) -> web.Response:
    arrived = time.monotonic()
    service = request.app[SERVICE]
    with service.metrics.request():
        best_of = body.parameters.best_of or 1
        check_best_of(best_of, service.limits)
        with service.load.permit():
            answers = await _answers(service, body, best_of)
    answer = answers[0]
    value: JsonObject = {"generated_text": _shown_text(body, answer.ending)}
    if body.parameters.details or body.parameters.decoder_input_details:
        value["details"] = _details(answer)
        if best_of > 1:
            value["details"]["best_of_sequences"] = [
                {"generated_text": _shown_text(body, other.ending)} | _details(other) for other in answers[1:]
            ]
    headers = timing_headers([answer.ending], characters=len(body.inputs), arrived=arrived)
    return json_response([value] if in_array else value, headers)


async def _answers(service: Service, body: GenerateBody, best_of: int) -> list[Answer]:
    """`best_of` answers, the likeliest first."""
    jobs = [await service.generator.prepare(body.inputs, body.parameters, add_special=True) for _ in range(best_of)]
    if best_of == 1:
        return [await collect(service, service.generator.run(jobs[0]))]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(collect(service, service.generator.run(job))) for job in jobs]
    return sorted((task.result() for task in tasks), key=lambda answer: answer.mean_logprob, reverse=True)


async def _streamed(request: web.Request, body: GenerateBody) -> web.StreamResponse:
    service = request.app[SERVICE]
    return await send_events(
        request,
        _events(service, body),
        headers=stream_headers(len(body.inputs)),
        keep_alive_seconds=service.keep_alive_seconds,
    )


async def _events(service: Service, body: GenerateBody) -> AsyncGenerator[bytes]:
    try:
        with service.metrics.request():
            check_streamable(body.parameters)
            with service.load.permit():
                job = await service.generator.prepare(body.inputs, body.parameters, add_special=True)
                async with aclosing(service.generator.run(job)) as steps:
                    async for step in steps:
                        if step.ending is not None:
                            service.metrics.finished(step.ending)
                        yield event(_step_value(body, step))
    except RequestError as error:
        yield event({"error": error.stream_text, "error_type": error.stream_code})


def _step_value(body: GenerateBody, step: Step) -> JsonObject:
    value: JsonObject = {"index": step.index, "token": _token_value(step.token)}
    if step.token.alternatives:
        value["top_tokens"] = [_token_value(token) for token in step.token.alternatives]
    ending = step.ending
    value["generated_text"] = None if ending is None else _shown_text(body, ending)
    value["details"] = None if ending is None or not body.parameters.details else _stream_details(ending)
    return value


def _stream_details(ending: Ending) -> JsonObject:
    return {
        "finish_reason": ending.finish_reason,
        "generated_tokens": ending.generated_tokens,
        "seed": ending.seed,
        "input_length": ending.input_tokens,
    }


def _details(answer: Answer) -> JsonObject:
    value: JsonObject = {
        "finish_reason": answer.ending.finish_reason,
        "generated_tokens": answer.ending.generated_tokens,
        "seed": answer.ending.seed,
        "prefill": [],
        "tokens": [_token_value(token) for token in answer.tokens],
    }
    if any(token.alternatives for token in answer.tokens):
        value["top_tokens"] = [[_token_value(other) for other in token.alternatives] for token in answer.tokens]
    return value


def _token_value(token: Token | AlternativeToken) -> JsonObject:
    return {"id": token.id, "text": token.text, "logprob": float32(token.logprob), "special": token.special}


def _shown_text(body: GenerateBody, ending: Ending) -> str:
    return body.inputs + ending.generated_text if body.parameters.return_full_text else ending.generated_text


def _character_bounds(raw: bytes, start: int, stop: int) -> tuple[int, int]:
    """Widens a range of bytes to whole UTF-8 characters."""
    while start > 0 and _is_continuation(raw, start):
        start -= 1
    while stop < len(raw) and _is_continuation(raw, stop):
        stop += 1
    return start, stop


def _is_continuation(raw: bytes, position: int) -> bool:
    return position < len(raw) and raw[position] & 0b1100_0000 == 0b1000_0000
