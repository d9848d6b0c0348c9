"""A real Chromium before the whole running site. Every page must keep its console clean."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from tests.browser.site import VisitedSite, visited_site

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
]
WAIT_MS = 15_000


def pytest_collection_modifyitems(items):
    """All of it runs on one loop, since the browser lives as long as the session."""
    for item in items:
        if "tests/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    with visited_site(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture(autouse=True)
def _fresh_twin(site: VisitedSite):
    site.twin.reset()
    yield
    site.twin.reset()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        await browser.close()


@dataclass
class Person:
    """Somebody at a browser of their own."""

    site: VisitedSite
    context: BrowserContext
    email: str
    complaints: list[str] = field(default_factory=list)

    async def open(self, path: str = "/") -> Page:
        """Open a tab and wait until its scripts are there."""
        page = await self.context.new_page()
        page.set_default_timeout(WAIT_MS)
        await self.visit(page, path)
        return page

    async def visit(self, page: Page, path: str) -> None:
        await page.goto(self.site.url + path)
        await page.wait_for_selector("chat-page[data-connection=live] chat-composer:defined")

    async def stored(self, conversation_id: str) -> list[dict]:
        """What the API says is in a conversation."""
        answer = await self.context.request.get(f"{self.site.url}/v1/conversations/{conversation_id}/messages")
        assert answer.ok, await answer.text()
        return (await answer.json())["data"]

    def watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", self._console)
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))

    def _console(self, message) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")


@pytest_asyncio.fixture(loop_scope="session")
async def person_at(site: VisitedSite, browser: Browser):
    """Make signed-in people; at the end nothing may have gone wrong in their browsers but what they expected."""
    people: list[Person] = []

    async def make(account: dict[str, str] | None = None, **options) -> Person:
        account = account or site.people.pop()
        context = await browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        await context.add_cookies([{"name": "sessionid", "value": account["session"], "url": site.url}])
        person = Person(site, context, account["email"])
        context.on("page", person.watch)
        people.append(person)
        return person

    yield make
    for person in people:
        await person.context.close()
    assert [complaint for person in people for complaint in person.complaints] == []


@pytest_asyncio.fixture(loop_scope="session")
async def alice(person_at) -> Person:
    return await person_at()


async def send(page: Page, text: str) -> None:
    """Write a message and press Enter."""
    await page.fill("#content", text)
    await page.press("#content", "Enter")


async def answered(page: Page, status: str = "complete") -> str:
    """Wait for the last answer's end; return the text it shows."""
    await page.wait_for_selector(f".message:last-child chat-answer[data-status={status}]")
    return await page.inner_text(".message:last-child .prose")


async def shown_text_reaches(page: Page, length: int) -> str:
    """Wait until the last answer shows so much text."""
    await page.wait_for_function(
        "length => (document.querySelector('.message:last-child .prose')?.textContent.length ?? 0) >= length",
        arg=length,
    )
    return await page.inner_text(".message:last-child .prose")


def conversation_id_of(page: Page) -> str:
    return page.url.rpartition("/")[2]


def directed(message: str, /, **wishes) -> str:
    """The message, with a first line that tells the twin how to answer."""
    return f"@twin {json.dumps(wishes)}\n{message}"
