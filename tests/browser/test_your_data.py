"""Taking one's data along, bringing conversations in, and having the account erased, in a real browser."""

import io
import json
import re
import urllib.request
import zipfile

import pytest

from tests.browser.conftest import answered, send
from tests.browser.people import PASSWORD
from tests.browser.test_memories import SMALL_TARGETS
from tests.browser.test_pages import PHONE, check_accessibility
from tests.conversations.transfers.chatgpt_export import chain
from tests.own_processes import wait_until

PAGE = "/account/data"
MOST_LOOKS = 300
FILE = [chain(2, conversation_id="one", title="Tea"), chain(4, conversation_id="two", title="Coffee"), 7]


@pytest.fixture(scope="module", autouse=True)
def celery(site):
    with site.celery():
        wait_until(lambda: is_up(site, "bulk"), 120, "a Celery worker")
        yield


def is_up(site, component) -> bool:
    with urllib.request.urlopen(f"{site.url}/readyz", timeout=10) as answer:
        return json.load(answer)["components"][component]["status"] == "up"


def chatgpt_file(document=None):
    content = json.dumps(FILE if document is None else document).encode()
    return {"name": "conversations.json", "mimeType": "application/json", "buffer": content}


async def plain_page(person, path=PAGE):
    page = await person.context.new_page()
    page.set_default_timeout(30_000)
    await page.goto(person.site.url + path)
    return page


async def with_transfers(person):
    """Return the page of somebody who has exported, and imported a file of which a part was refused."""
    page = await plain_page(person)
    await page.click("button:text('Export everything')")
    await page.wait_for_selector("a:text-is('Download')")
    await page.set_input_files("#file", chatgpt_file())
    await page.click("button:text-is('Import')")
    await page.wait_for_selector("text=2 imported, 1 refused.")
    return page


async def test_an_export_is_written_while_the_page_looks_on_and_is_then_downloaded(alice):
    page = await alice.open()
    await send(page, "What is the CAP theorem?")
    await answered(page)
    await page.goto(alice.site.url + PAGE)
    await page.click("button:text('Export everything')")
    await page.evaluate("window.isTheSamePage = true")
    await page.wait_for_selector("a:text-is('Download')", timeout=60_000)
    assert await page.evaluate("window.isTheSamePage")
    async with page.expect_download() as started:
        await page.click("a:text-is('Download')")
    download = await started.value
    assert re.fullmatch(r"chat-export-\d{4}-\d\d-\d\d\.zip", download.suggested_filename)
    with zipfile.ZipFile(io.BytesIO((await download.path()).read_bytes())) as archive:
        [conversation] = json.loads(archive.read("conversations.json"))["conversations"]
    assert conversation["messages"][0]["content"] == "What is the CAP theorem?"


async def test_a_file_is_imported_and_leads_to_its_conversations(alice):
    page = await with_transfers(alice)
    assert await page.locator("[data-part=announcer]").count() == 1
    await page.click("text=What came of each conversation")
    assert await page.locator(".transfer").count() == 3
    assert "It is not a conversation." in await page.inner_text(".transfer:first-child")
    await page.click("a:text-is('Tea')")
    await page.wait_for_selector("text=Message 1")


async def test_a_file_that_is_none_says_so(alice):
    page = await plain_page(alice)
    await page.set_input_files("#file", {"name": "a.zip", "mimeType": "application/zip", "buffer": b"PK nonsense"})
    await page.click("button:text-is('Import')")
    await page.wait_for_selector(".field__error >> text=The zip is damaged.")


async def test_without_scripts_all_of_it_works(person_at):
    person = await person_at(java_script_enabled=False)
    page = await plain_page(person)
    await page.click("button:text('Export everything')")
    await page.wait_for_selector("section[aria-labelledby=export] .transfer")
    await page.set_input_files("#file", chatgpt_file())
    await page.click("button:text-is('Import')")
    await page.wait_for_selector("section[aria-labelledby=import] .transfer")
    for _ in range(MOST_LOOKS):
        if not await page.locator("noscript a").count():
            break
        await page.click("noscript a")
    assert await page.locator("a:text-is('Download')").count() == 1
    assert await page.locator("text=2 imported, 1 refused.").count() == 1


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_axe_finds_nothing_on_these_pages(person_at, colours):
    person = await person_at(bypass_csp=True, color_scheme=colours)
    page = await with_transfers(person)
    await check_accessibility(page)
    await page.click("text=What came of each conversation")
    await check_accessibility(page)


async def test_on_a_phone_nothing_scrolls_sideways_and_all_can_be_touched(person_at):
    page = await with_transfers(await person_at(viewport=PHONE))
    for _ in range(2):
        assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert await page.evaluate(SMALL_TARGETS) == []
        if await page.locator("text=What came of each conversation").count():
            await page.click("text=What came of each conversation")


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_an_account_is_deleted_from_the_page_and_the_receipt_is_read(person_at, site, colours):
    person = await person_at(bypass_csp=True, color_scheme=colours)
    await with_transfers(person)
    give_password = f"user.set_password('{PASSWORD}'); user.save()"
    site.manage(
        "shell", "--no-imports", "-c",
        f"from accounts.models import User; user = User.objects.get(email='{person.email}');"
        + give_password,
    )  # fmt: skip
    await person.context.clear_cookies()
    page = await plain_page(person, "/accounts/login/")
    await page.fill("input[name=login]", person.email)
    await page.fill("input[name=password]", PASSWORD)
    await page.click("button:text-is('Sign in')")
    await page.goto(site.url + PAGE)
    await page.click("text=Delete your account…")
    await page.fill("input[name=password]", PASSWORD)
    await page.click("button:text-is('Go on')")
    await page.wait_for_selector("h1:text('Delete your account')")
    await check_accessibility(page)
    await page.fill("#address", "somebody@example.com")
    await page.click("button:text-is('Erase everything')")
    await page.wait_for_selector("text=Nothing has been erased.")
    await page.fill("#address", person.email)
    await page.click("button:text-is('Erase everything')")
    await page.wait_for_selector(".receipt")
    for _ in range(MOST_LOOKS):
        if await page.locator("text=Your account has been erased").count():
            break
        await page.reload()
    assert await page.locator("text=Your account has been erased").count() == 1
    assert await page.locator("text=not done yet").count() == 0
    assert await page.locator("tr:has-text('Conversations')").count() >= 1
    await check_accessibility(page)
    await page.goto(site.url + PAGE)
    assert "/accounts/login/" in page.url
    await page.fill("input[name=login]", person.email)
    await page.fill("input[name=password]", PASSWORD)
    await page.click("button:text-is('Sign in')")
    await page.wait_for_selector("[role=alert], .notice--error, .field__error")
    person.complaints = [each for each in person.complaints if "422" not in each]
