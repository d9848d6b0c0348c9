"""One chat answer as a series of deltas, whether it is text, a tool call, or text after no tool was wanted."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from inference.local_server.chat_body import ChatBody
from inference.local_server.generation import Generator, Job
from inference.local_server.grammar import Grammar
from inference.local_server.parameters import Parameters
from inference.local_server.service import Service
from inference.local_server.tokens import Ending, Step, Token
from inference.local_server.tools import NO_TOOL, CallDelta, CallReader, ToolPlan, plan_tools


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """What one token adds to the answer: text, a piece of a call, or nothing that is shown."""

    token: Token
    content: str | None
    call: CallDelta | None
    finish_reason: str | None
    ending: Ending | None


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A chat request with its rendered prompt, and the second prompt for when no tool is wanted."""

    body: ChatBody
    prompt: str
    parameters: Parameters
    plan: ToolPlan | None
    prompt_without_tools: str

    async def deltas(self, generator: Generator) -> AsyncGenerator[ChatDelta]:
        """The answer. A model that may and does choose no tool is asked again without them."""
        job = await generator.prepare(self.prompt, self.parameters, add_special=False)
        if self.plan is not None:
            reader = CallReader(self.plan.call_id)
            async with aclosing(_call_deltas(generator, job, reader)) as calls:
                async for delta in calls:
                    yield delta
            if reader.name != NO_TOOL:
                return
            plain = replace(self.parameters, grammar=None)
            job = await generator.prepare(self.prompt_without_tools, plain, add_special=False)
        async with aclosing(generator.run(job)) as steps:
            async for step in steps:
                yield _text_delta(step)


def open_dialogue(service: Service, body: ChatBody) -> Dialogue:
    """Renders the prompts. Raises `TemplateError` or `ToolError`."""
    plan = plan_tools(body)
    messages = [{"role": message["role"], "content": message["content"]} for message in body.messages]
    plain_prompt = service.template.render(messages)
    parameters = replace(body.parameters, grammar=body.response_format)
    if plan is None:
        return Dialogue(body, plain_prompt, parameters, None, plain_prompt)
    tools = plan.described()
    hint = plan.prompt if service.template.uses_tools else f"{plan.prompt}\n{tools}"
    last = messages[-1]
    messages[-1] = {"role": last["role"], "content": f"{last['content']}\n---\n{hint}"}
    prompt = service.template.render(messages, tools)
    with_grammar = replace(body.parameters, grammar=Grammar("json", plan.schema()))
    return Dialogue(body, prompt, with_grammar, plan, plain_prompt)


async def _call_deltas(generator: Generator, job: Job, reader: CallReader) -> AsyncGenerator[ChatDelta]:
    async with aclosing(generator.run(job)) as steps:
        async for step in steps:
            pieces = [] if step.token.special else reader.read(step.token.text)
            if reader.name == NO_TOOL:
                return
            for piece in pieces[:-1]:
                yield ChatDelta(step.token, None, piece, None, None)
            # A call that ends by itself has no finish reason; one that is cut says so with its last piece.
            reason = "length" if pieces and step.ending and step.ending.finish_reason == "length" else None
            if pieces or step.ending is not None:
                yield ChatDelta(step.token, None, pieces[-1] if pieces else None, reason, step.ending)


def _text_delta(step: Step) -> ChatDelta:
    text = "" if step.token.special else step.token.text
    return ChatDelta(step.token, text, None, finish_reason(step.ending), step.ending)


def finish_reason(ending: Ending | None) -> str | None:
    """The reason in the words of the OpenAI-style routes."""
    if ending is None:
        return None
    return "stop" if ending.finish_reason == "eos_token" else ending.finish_reason
