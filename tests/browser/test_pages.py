"""The pages as people find them: by keyboard, on a phone, without scripts, with a screen reader."""

import pytest
from axe_playwright_python.base import AXE_FILE_PATH

from tests.browser.conftest import answered, conversation_id_of, directed, send

ANSWER = (
    "# Heading\n\nText with `code` and [a link](https://example.org).\n\n"
    "```python\nprint(1)\n```\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n> quote"
)
PHONE = {"width": 390, "height": 844}
AXE = AXE_FILE_PATH.read_text()
CHECK = """
async () => {
  const options = {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]};
  const found = await axe.run(document, options);
  const told = ({html, failureSummary}) => `${html} ${failureSummary}`;
  return found.violations.map(({id, nodes}) => [id, ...nodes.map(told)]);
}
"""
SIDEBAR_RESTS = """
() => getComputedStyle(document.querySelector("chat-sidebar")).visibility === "visible"
  && document.getAnimations().every(({playState}) => playState === "finished")
"""


async def check_accessibility(page):
    await page.evaluate(AXE)
    assert await page.evaluate(CHECK) == []


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_axe_finds_nothing_on_the_chats_pages(person_at, colours):
    person = await person_at(bypass_csp=True, color_scheme=colours, reduced_motion="reduce")
    page = await person.open()
    await check_accessibility(page)
    await send(page, directed("Show me everything", text=ANSWER))
    await answered(page)
    await check_accessibility(page)
    await page.click(".conversation-row__more")
    await page.click(".conversation-row summary")
    await check_accessibility(page)
    await page.keyboard.press("Escape")
    await page.click(".user-button")
    await check_accessibility(page)


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_axe_finds_nothing_on_a_phone(person_at, colours):
    person = await person_at(bypass_csp=True, color_scheme=colours, reduced_motion="reduce", viewport=PHONE)
    page = await person.open()
    await check_accessibility(page)
    await page.click("[data-part=open-sidebar]")
    # Not half-way: what slides in is judged where it comes to rest.
    await page.wait_for_selector("chat-sidebar[data-drawer-open]")
    await page.wait_for_function(SIDEBAR_RESTS)
    await check_accessibility(page)


@pytest.mark.parametrize("path", ["/accounts/login/", "/accounts/signup/", "/accounts/password/reset/"])
async def test_axe_finds_nothing_on_the_plain_pages(site, browser, path):
    context = await browser.new_context(bypass_csp=True, color_scheme="dark")
    page = await context.new_page()
    await page.goto(site.url + path)
    await check_accessibility(page)
    await context.close()


async def test_what_is_hidden_is_not_seen(site, browser):
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(site.url + "/accounts/login/")
    hidden = page.locator("main [hidden]")
    assert await hidden.count()
    assert not any([await each.is_visible() for each in await hidden.all()])
    await context.close()


async def test_axe_finds_nothing_where_there_is_nothing(person_at):
    person = await person_at(bypass_csp=True)
    page = await person.context.new_page()
    await page.goto(f"{person.site.url}/c/00000000-0000-7000-8000-000000000000")
    assert await page.inner_text("h1") == "There is nothing here"
    await check_accessibility(page)
    person.complaints.clear()  # Chromium reports the 404


async def test_a_newcomer_signs_up_and_is_answered(site, browser):
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(site.url)
    await page.click("text=Create an account")
    await page.fill("input[type=email]", "newcomer@example.com")
    await page.fill("input[type=password]", "correct-horse-battery-7")
    await page.click("button[type=submit]")
    await page.wait_for_selector("chat-page[data-connection=live] chat-composer:defined")
    await send(page, directed("Hello", text="Welcome!"))
    assert await answered(page) == "Welcome!"
    await context.close()


async def test_without_scripts_a_message_is_sent_and_its_answer_read(person_at):
    person = await person_at(java_script_enabled=False)
    page = await person.context.new_page()
    await page.goto(person.site.url)
    await page.fill("#content", directed("No scripts here", text="Plain **answer**."))
    await page.click("button[aria-label=Send]")
    await page.wait_for_url("**/c/*")

    # The page fetches itself anew until the answer is there.
    await page.wait_for_selector("chat-answer[data-status=complete]")
    assert await page.inner_text(".prose") == "Plain answer."
    assert "No scripts here" in await page.inner_text(".bubble")


async def test_a_conversation_is_renamed_and_deleted_from_its_menu(alice):
    page = await alice.open()
    await send(page, directed("To be renamed", text="Fine."))
    await answered(page)
    conversation_id = conversation_id_of(page)
    await page.click(".conversation-row__more")
    await page.fill("[name=title]", "Ein neuer Titel")
    await page.click("button:text('Rename')")
    await page.wait_for_selector(".conversation-row__title >> text=Ein neuer Titel")
    assert await page.inner_text("h1") == "Ein neuer Titel"
    await page.click(".conversation-row__more")
    await page.click(".conversation-row summary")
    await page.click("button:text('Delete for good')")
    await page.wait_for_url(alice.site.url + "/")
    assert await page.locator(".conversation-row").count() == 0
    answer = await page.goto(f"{alice.site.url}/c/{conversation_id}")
    assert answer.status == 404
    alice.complaints.clear()  # Chromium reports the 404


async def test_a_strangers_conversation_is_not_found(alice, person_at):
    page = await alice.open()
    await send(page, directed("Private", text="Yes."))
    await answered(page)
    stranger = await person_at()
    theirs = await stranger.context.new_page()
    answer = await theirs.goto(page.url)
    assert answer.status == 404
    assert "Private" not in await theirs.content()
    stranger.complaints.clear()  # Chromium reports the 404


async def test_a_failed_answer_says_so_and_can_be_tried_again(alice):
    page = await alice.open()
    alice.site.twin.switch_on("error", error_type="generation", message="CUDA error")
    await send(page, directed("Will fail", text="Now it works."))
    await answered(page, "failed")
    sentence = await page.inner_text(".answer [data-when=failed]")
    assert "CUDA" not in sentence
    assert len(sentence) > 10
    alice.site.twin.switch_off()
    await page.click(".message:last-child [aria-label='Write another answer']")
    assert await answered(page) == "Now it works."


async def test_the_drawer_opens_closes_and_gives_the_focus_back(person_at):
    person = await person_at(viewport=PHONE)
    page = await person.open()
    await page.click("[data-part=open-sidebar]")
    await page.wait_for_selector("chat-sidebar[data-drawer-open]")
    assert await page.evaluate("document.activeElement.dataset.part") == "close-sidebar"
    await page.keyboard.press("Escape")
    await page.wait_for_selector("chat-sidebar:not([data-drawer-open])", state="attached")
    assert await page.evaluate("document.activeElement.dataset.part") == "open-sidebar"


async def test_a_long_title_does_not_make_a_phone_scroll_sideways(person_at):
    person = await person_at(viewport=PHONE)
    page = await person.open()
    await send(page, directed("A question of many words, so that its title is wider than the phone", text=ANSWER))
    await answered(page)
    assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    new_chat = await page.locator(".top-bar__new").bounding_box()
    assert new_chat["x"] + new_chat["width"] <= PHONE["width"]


async def test_every_control_is_large_enough_for_a_thumb(person_at):
    person = await person_at(viewport=PHONE)
    page = await person.open()
    await send(page, directed("Hello", text=ANSWER))
    await answered(page)
    sizes = await page.evaluate(
        """[...document.querySelectorAll("button, summary, select, textarea, .button, .conversation-row__link")]
        .map(e => [e.outerHTML.slice(0, 80), e.getBoundingClientRect()])
        .filter(([, box]) => box.width > 0 && Math.round(Math.min(box.width, box.height)) < 44)
        .map(([html, box]) => [html, box.width, box.height])"""
    )
    assert sizes == []


async def test_the_announcer_says_that_an_answer_begins_and_ends_and_never_its_words(alice):
    page = await alice.open()
    await page.evaluate(
        """() => { window.said = []; const region = document.querySelector("[data-part=announcer]");
        new MutationObserver(() => region.textContent && said.push(region.textContent))
        .observe(region, {childList: true, subtree: true, characterData: true}); }"""
    )
    await send(page, directed("Hello", tokens=100, token_ms=5))
    await answered(page)
    await page.wait_for_function("said.includes('Answer ready')")
    assert await page.evaluate("said") == ["Answering", "Answer ready"]
