"""Histories of answers, lived through with the whole product: asked for, stopped, deleted, struck by faults."""

import asyncio
import json
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

import aiohttp
from asgiref.sync import sync_to_async
from hypothesis import strategies as st

from accounts import api_keys, sanctions
from accounts.erasure.closing import request_erasure
from accounts.models import User
from conversations import tasks
from conversations.models import Generation
from tests.accounts.factories import make_key_row, make_user
from tests.accounts.quotas.conftest import forget_everything
from tests.api_client import ApiClient, Event, EventStream
from tests.conversations.ledger import mishaps
from tests.conversations.ledger.books import assert_books_balance_but_for_the_deleted
from tests.inference.core.waiting import until
from tests.running_site import RunningSite

REFUSALS = frozenset({401, 403, 404, 409, 413, 422, 429, 503})
FAULT = {"kind": "error", "after": 3, "always": True, "error_type": "validation"}
PATIENCE_SECONDS = 1.5
"""How long a step waits for what it wants to see: the workers may be frozen."""
STEPS = st.tuples(
    st.sampled_from(
        [
            *["send"] * 4, *["send_a_long_one"] * 6, *["cancel"] * 4, *["delete_the_conversation"] * 3,
            "send_some_at_once", "send_one_that_is_too_dear", "send_one_that_fails", "begin_a_temporary_conversation",
            "edit", "ask_again", "go_on", "repeat", "send_the_same_at_once", "cancel_twice_at_once", "stop_reading",
            "change_the_tier", "revoke_the_key", "suspend", "erase_the_account", "forget_what_redis_holds",
            "kill_a_worker", "freeze_the_workers", "thaw_the_workers", "cut_the_database", "let_deadlines_pass",
            "let_a_midnight_pass", "tidy_up",
        ]
    ),
    st.integers(0, 99),
    st.sampled_from(["start", "token", "done"]),
)  # fmt: skip
"""What is done, to which of the answers, and how far one that is begun is waited for."""


@dataclass
class Answer:
    """One answer, how it was asked for, and what its reader has seen."""

    path: str
    body: dict
    key: str
    user: User
    events: list[Event]
    reader: asyncio.Task

    @property
    def id(self) -> UUID:
        return UUID(self.events[0].data["generation_id"])

    @property
    def conversation_id(self) -> str:
        return self.events[0].data["conversation_id"]

    @property
    def is_done(self) -> bool:
        return self.events[-1].type == "done"


@dataclass
class History:
    """One person at a time: who is erased is followed by the next."""

    site: RunningSite
    session: aiohttp.ClientSession
    tiers: list[str]
    answers: list[Answer] = field(default_factory=list)
    erasures: list[UUID] = field(default_factory=list)
    steps: set[str] = field(default_factory=set)
    seen: Counter = field(default_factory=Counter)
    """How often which answer came to which kind of request."""
    messages: int = 0

    async def begin(self) -> None:
        self.user = await sync_to_async(make_user)(tier=self.tiers[0])
        await self._take_a_new_key()

    async def do(self, step: str, number: int, phase: str) -> None:
        """Take one step; whatever comes of it, the books balance."""
        self.steps.add(step)
        self.number, self.phase = number, phase
        await getattr(self, step)()
        await sync_to_async(assert_books_balance_but_for_the_deleted)()

    async def send(self, **directive) -> None:
        """Say something in a new conversation, or in one that there is."""
        known = self._any() if self.number % 2 else None
        await self._say(known.conversation_id if known else None, {"tokens": self.number % 20 + 1, **directive})

    async def send_a_long_one(self) -> None:
        await self._say(None, {"tokens": 150, "token_ms": 10}, background=self.number % 3 == 0)

    async def send_some_at_once(self) -> None:
        self.phase = "start"
        await asyncio.gather(*(self._say(None, {"tokens": 30, "token_ms": 5}) for _ in range(3)))

    async def send_one_that_is_too_dear(self) -> None:
        await self._say(None, {"tokens": 3}, text="x" * 30_000)

    async def send_one_that_fails(self) -> None:
        await self.send(fault=FAULT)

    async def send_the_same_at_once(self) -> None:
        """Four times with one key: one answer comes of it, or none."""
        conversation_id = await self._conversation()
        if conversation_id is None:
            return
        self.phase = "start"
        path, body = f"/v1/conversations/{conversation_id}/messages", {"content": self._question({"tokens": 4})}
        await asyncio.gather(*(self._ask(path, body, key=f"at once {self.messages}") for _ in range(4)))
        assert await Generation.objects.filter(conversation_id=conversation_id).acount() <= 1

    async def begin_a_temporary_conversation(self) -> None:
        if conversation_id := await self._conversation(temporary=True):
            await self._say(conversation_id, {"tokens": 60, "token_ms": 10})

    async def edit(self) -> None:
        if answer := self._any():
            await self._say(answer.conversation_id, {"tokens": 5}, parent_id=None)

    async def ask_again(self) -> None:
        if answer := self._any():
            await self._ask(f"/v1/messages/{answer.id}/regenerate", {})

    async def go_on(self) -> None:
        cut_off = [each for each in self._mine() if each.is_done and each.events[-1].data["finish_reason"] != "stop"]
        if answer := self._any(cut_off):
            await self._ask(f"/v1/messages/{answer.id}/continue", {})

    async def repeat(self) -> None:
        """Ask for what is there already, as after a broken connection."""
        if answer := self._any():
            await self._ask(answer.path, answer.body, key=answer.key)

    async def cancel(self) -> None:
        if answer := self._any(self._open()):
            await self._stop(answer)

    async def cancel_twice_at_once(self) -> None:
        if answer := self._any():
            await asyncio.gather(self._stop(answer), self._stop(answer))

    async def stop_reading(self) -> None:
        if answer := self._any(self._open()):
            answer.reader.cancel()

    async def delete_the_conversation(self) -> None:
        """Of one that is being answered, where there is any."""
        if answer := self._any(self._open()) or self._any():
            await self._call("DELETE", f"/v1/conversations/{answer.conversation_id}")

    async def change_the_tier(self) -> None:
        await User.objects.filter(pk=self.user.pk).aupdate(tier_id=self.tiers[self.number % len(self.tiers)])

    async def revoke_the_key(self) -> None:
        await sync_to_async(api_keys.revoke_key)(self.key)
        await self._take_a_new_key()

    async def suspend(self) -> None:
        await sync_to_async(sanctions.suspend)(self.user, reason="Tests.", by=None)
        status, _ = await self._call("POST", "/v1/conversations", {})
        assert status not in {200, 201}
        await sync_to_async(sanctions.lift)(self.user, why="Tests.", by=None)
        await self._take_a_new_key()

    async def erase_the_account(self) -> None:
        """It is closed now, and erased when the history is over, as tasks do it: some time later."""
        erasure = await sync_to_async(request_erasure)(self.user.pk)
        self.erasures.append(erasure.pk)
        await self.begin()

    async def forget_what_redis_holds(self) -> None:
        await asyncio.to_thread(forget_everything)

    async def kill_a_worker(self) -> None:
        """Another one comes in its place, some seconds later."""
        self.site.start_worker()
        await asyncio.to_thread(self.site.kill_worker)

    async def freeze_the_workers(self) -> None:
        for worker in self.site.workers:
            worker.send_signal(signal.SIGSTOP)

    async def thaw_the_workers(self) -> None:
        for worker in self.site.workers:
            worker.send_signal(signal.SIGCONT)

    async def cut_the_database(self) -> None:
        await sync_to_async(mishaps.cut_the_sites_connections)()

    async def let_deadlines_pass(self) -> None:
        await sync_to_async(mishaps.let_deadlines_pass)()
        await self.tidy_up()

    async def let_a_midnight_pass(self) -> None:
        await sync_to_async(mishaps.let_a_midnight_pass)()

    async def tidy_up(self) -> None:
        """Run what Celery runs every minute."""
        for task in (tasks.give_up_overdue_generations, tasks.release_orphaned_reservations):
            await sync_to_async(task)()

    async def _take_a_new_key(self) -> None:
        self.key, secret = await sync_to_async(make_key_row)(self.user)
        self.client = ApiClient(self.session, self.site.url, secret)

    def _mine(self) -> list[Answer]:
        return [each for each in self.answers if each.user == self.user]

    def _open(self) -> list[Answer]:
        return [each for each in self._mine() if not each.reader.done()]

    def _any(self, among: list[Answer] | None = None) -> Answer | None:
        among = self._mine() if among is None else among
        return among[self.number % len(among)] if among else None

    async def _stop(self, answer: Answer) -> None:
        await self._call("POST", f"/v1/generations/{answer.id}/cancel")

    async def _conversation(self, **fields) -> str | None:
        status, made = await self._call("POST", "/v1/conversations", fields)
        return made["conversation_id"] if status == 201 else None

    def _question(self, directive: dict, text: str = "") -> str:
        self.messages += 1
        return f"@twin {json.dumps(directive)}\nQuestion {self.messages} {text}"

    async def _say(self, conversation_id: str | None, directive: dict, *, text: str = "", **fields) -> None:
        conversation_id = conversation_id or await self._conversation()
        if conversation_id is not None:
            body = {"content": self._question(directive, text), **fields}
            await self._ask(f"/v1/conversations/{conversation_id}/messages", body)

    async def _ask(self, path: str, body: dict, *, key: str = "") -> None:
        """Ask for an answer, and read it to the end beside what is done next."""
        self.messages += 1
        key = key or f"key {self.messages}"
        headers = {**self.client.headers, "Idempotency-Key": key}
        with suppress(aiohttp.ClientError, EOFError):
            response = await self.session.post(self.site.url + path, json=body, headers=headers)
            if response.status != 200:
                self._note("asking", response.status, json.loads(await response.read()))
                return
            self._note("asking", 200)
            stream = EventStream(response)
            events = [await stream.next()]
            answer = Answer(path, body, key, self.user, events, asyncio.create_task(_read(stream, events)))
            self.answers.append(answer)
            await self._watch(answer)

    async def _watch(self, answer: Answer) -> None:
        wanted = {"start": {"start"}, "token": {"token", "done"}, "done": {"done"}}[self.phase]
        with suppress(TimeoutError):
            await until(
                lambda: answer.reader.done() or any(event.type in wanted for event in answer.events),
                seconds=PATIENCE_SECONDS,
            )

    async def _call(self, method: str, path: str, body=None):
        try:
            status, told = await self.client.call(method, path, body)
        except aiohttp.ClientError:
            return None, None
        self._note(f"{method} {'cancel' if path.endswith('cancel') else ''}", status, told)
        return status, told

    def _note(self, what: str, status: int, told: object = None) -> None:
        code = told["error"]["code"] if isinstance(told, dict) and "error" in told else ""
        self.seen[f"{what} {status} {code}"] += 1
        is_cut = "cut_the_database" in self.steps
        assert status < 300 or status in REFUSALS or is_cut, (what, status, told)


async def _read(stream: EventStream, events: list[Event]) -> None:
    """Read on until the answer is done, or the connection ends."""
    with suppress(EOFError, aiohttp.ClientError):
        while events[-1].type != "done":
            events.append(await stream.next())
    stream.response.release()
