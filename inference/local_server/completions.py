"""The route `/v1/completions`: plain prompts, one or several at once."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from aiohttp import web

from inference.local_server.bodies import MAX_UINT64, Fields, JsonObject, read_fields, wrong_shape
from inference.local_server.dialogue import finish_reason
from inference.local_server.errors import CompletionsError, RequestError
from inference.local_server.frames import DONE, event, send_events
from inference.local_server.generate import collect, json_response
from inference.local_server.generation import Job
from inference.local_server.openai_frames import error_event, usage_value
from inference.local_server.parameters import Parameters
from inference.local_server.service import SERVICE, Service
from inference.local_server.timing_headers import stream_headers, timing_headers
from inference.local_server.tokens import Step
from inference.local_server.validation import Limits


@dataclass(frozen=True, slots=True)
class CompletionsBody:
    """A completions request."""

    prompts: tuple[str, ...]
    parameters: Parameters
    stream: bool

    @property
    def characters(self) -> int:
        return sum(len(prompt) for prompt in self.prompts)


async def completions(request: web.Request) -> web.StreamResponse:
    """POST /v1/completions: one JSON object, or the events of all prompts as they come."""
    service = request.app[SERVICE]
    body = _read_body(await read_fields(request), service.limits)
    if not body.stream:
        return await _whole(service, body)
    return await send_events(
        request,
        _events(service, body),
        headers=stream_headers(body.characters),
        keep_alive_seconds=service.keep_alive_seconds,
    )


def _read_body(fields: Fields, limits: Limits) -> CompletionsBody:
    """Raises `RejectedBodyError` for a wrong shape and `CompletionsError` for what is not done."""
    fields.text("model")
    temperature = fields.number("temperature")
    body = CompletionsBody(
        prompts=_read_prompts(fields),
        parameters=Parameters(
            temperature=None if temperature == 0 else temperature,
            do_sample=temperature != 0,
            repetition_penalty=fields.number("repetition_penalty"),
            frequency_penalty=fields.number("frequency_penalty"),
            top_p=fields.number("top_p"),
            max_new_tokens=fields.unsigned("max_tokens"),
            stop=fields.texts("stop") or (),
            seed=fields.unsigned("seed", MAX_UINT64),
            details=True,
        ),
        stream=fields.flag("stream", default=False),
    )
    if fields.text("suffix"):
        text = "Suffix is not supported and can be achieved by preprocessing the prompt."
        raise CompletionsError("suffix not supported", text)
    if len(body.prompts) > limits.max_client_batch_size:
        text = f"Number of prompts exceeds the maximum allowed batch size of {limits.max_client_batch_size}"
        raise CompletionsError("batch size exceeded", text)
    return body


def _read_prompts(fields: Fields) -> tuple[str, ...]:
    if not isinstance(fields.required_value("prompt"), list):
        return (fields.required_text("prompt"),)
    prompts = fields.texts("prompt") or ()
    if not prompts:
        raise wrong_shape("prompt", "Empty array detected. Do not use an empty array for the prompt")
    return prompts


async def _prepare(service: Service, body: CompletionsBody) -> list[Job]:
    return [await service.generator.prepare(prompt, body.parameters, add_special=True) for prompt in body.prompts]


async def _whole(service: Service, body: CompletionsBody) -> web.Response:
    arrived = time.monotonic()
    with service.metrics.request(), service.load.permit():
        jobs = await _prepare(service, body)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(collect(service, service.generator.run(job))) for job in jobs]
    endings = [task.result().ending for task in tasks]
    choices = [
        {"index": index, "text": ending.generated_text, "logprobs": None, "finish_reason": finish_reason(ending)}
        for index, ending in enumerate(endings)
    ]
    value = _envelope(service) | {"choices": choices, "usage": usage_value(*endings)}
    headers = timing_headers(endings, characters=body.characters, arrived=arrived, has_compute_time=False)
    return json_response(value, headers)


async def _events(service: Service, body: CompletionsBody) -> AsyncGenerator[bytes]:
    try:
        with service.metrics.request(), service.load.permit():
            jobs = await _prepare(service, body)
            async with aclosing(_interleaved([service.generator.run(job) for job in jobs])) as steps:
                async for index, step in steps:
                    if step.ending is not None:
                        service.metrics.finished(step.ending)
                    yield event(_chunk(service, index, step))
    except RequestError as error:
        yield error_event(error)
    yield DONE


async def _interleaved(answers: list[AsyncGenerator[Step]]) -> AsyncGenerator[tuple[int, Step]]:
    """The steps of all answers as they come, each with its prompt's number."""
    arrivals: asyncio.Queue[tuple[int, Step]] = asyncio.Queue()
    tasks = [asyncio.create_task(_forward(index, answer, arrivals)) for index, answer in enumerate(answers)]
    try:
        open_count = len(tasks)
        while open_count:
            index, step = await _next_arrival(arrivals, tasks)
            open_count -= step.ending is not None
            yield index, step
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _forward(index: int, answer: AsyncGenerator[Step], arrivals: asyncio.Queue[tuple[int, Step]]) -> None:
    async with aclosing(answer):
        async for step in answer:
            arrivals.put_nowait((index, step))


async def _next_arrival(arrivals: asyncio.Queue[tuple[int, Step]], tasks: list[asyncio.Task[None]]) -> tuple[int, Step]:
    """Waits for a step, or raises what ended one of the tasks."""
    getting = asyncio.ensure_future(arrivals.get())
    try:
        while not getting.done():
            running = [task for task in tasks if not task.done()]
            await asyncio.wait({getting, *running}, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done() and not getting.done():
                    task.result()
        return getting.result()
    finally:
        getting.cancel()


def _chunk(service: Service, index: int, step: Step) -> JsonObject:
    reason = "" if step.ending is None else step.ending.finish_reason
    choice = {"index": index, "text": step.token.text, "logprobs": None, "finish_reason": reason}
    chunk = _envelope(service) | {"choices": [choice]}
    return chunk if step.ending is None else chunk | {"usage": usage_value(step.ending)}


def _envelope(service: Service) -> JsonObject:
    return {
        "object": "text_completion",
        "id": "",
        "created": int(time.time()),
        "model": service.model.model_id,
        "system_fingerprint": service.fingerprint,
    }
