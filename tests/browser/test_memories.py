"""What is remembered, and temporary chats, in a real browser."""

import pytest

from tests.browser.conftest import answered, conversation_id_of, send
from tests.browser.test_pages import PHONE, check_accessibility

SMALL_TARGETS = """
() => [...document.querySelectorAll("button, summary, select, textarea, .button, input:not([type=hidden])")]
  .map(e => [e.outerHTML.slice(0, 80), e.getBoundingClientRect()])
  .filter(([, box]) => box.width > 0 && Math.round(Math.min(box.width, box.height)) < 44)
  .map(([html, box]) => [html, box.width, box.height])
"""


async def remembering(person, *facts):
    """Return a tab on the page of memories, with some that were asked for in a conversation."""
    page = await person.open()
    for number, fact in enumerate(facts, 1):
        await send(page, f"Remember that {fact}")
        await answers_are_there(page, number)
    await page.goto(person.site.url + "/memories")
    return page


async def answers_are_there(page, count):
    """Wait until so many messages have been answered: the last one shown may still be the one before."""
    await page.wait_for_selector(f".message:nth-child({2 * count}) chat-answer[data-status=complete]")


async def open_temporary_chat(person):
    page = await person.open()
    await page.click("text=Temporary chat")
    await page.wait_for_selector("chat-page[data-connection=live] .temporary-banner")
    return page


async def test_what_a_message_asks_to_remember_is_told_and_can_be_forgotten(alice):
    page = await alice.open()
    await send(page, "Remember that I am vegan. What can I eat?")
    await answered(page)
    await page.wait_for_selector(".answer__notices >> text=This will be remembered")
    await page.click(".user-button")
    await page.click("text=Memories and instructions")
    assert await page.inner_text(".memory__text") == "I am vegan."
    await page.click(".memory summary:text('Delete')")
    await page.click("button:text('Delete for good')")
    await page.wait_for_selector("text=Nothing is remembered yet.")


async def test_a_memory_is_edited_in_place_by_keyboard_alone(alice):
    page = await remembering(alice, "I am vegan")
    await page.focus(".memory summary:text('Edit')")
    await page.keyboard.press("Enter")
    await page.focus(".memory textarea")
    await page.keyboard.press("Control+A")
    await page.keyboard.type("I eat fish")
    for _ in range(20):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.textContent.trim()") == "Save":
            break
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".memory__text >> text=I eat fish")


async def test_the_page_of_memories_works_without_scripts(person_at):
    person = await person_at(java_script_enabled=False)
    page = await person.context.new_page()
    await page.goto(person.site.url + "/memories")
    await page.fill("#content-new", "I live in Ghent")
    await page.fill("#until-new", "2999-12-31")
    await page.click("button:text('Remember')")
    assert await page.inner_text(".memory__text") == "I live in Ghent"
    assert "Used until 31 December 2999." in await page.inner_text(".memory")
    await page.click("button:text('Switch off')")
    assert "Switched off." in await page.inner_text(".memory")
    await page.fill("#instructions", "Be brief.")
    await page.click("button:text('Save the instructions')")
    assert await page.input_value("#instructions") == "Be brief."


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 800}, PHONE], ids=["desk", "phone"])
async def test_axe_finds_nothing_on_the_page_of_memories_and_a_thumb_can_use_it(person_at, colours, viewport):
    person = await person_at(bypass_csp=True, color_scheme=colours, reduced_motion="reduce", viewport=viewport)
    page = await remembering(person, "I am vegan", "my favourite tea comes from a small shop in the old town of Ghent")
    await page.click("button:text('Switch off')")
    await page.click(".memory:nth-child(2) summary:text('Edit')")
    await page.click(".memory:nth-child(2) summary:text('Delete')")
    await check_accessibility(page)
    assert await page.evaluate(SMALL_TARGETS) == []
    assert await page.evaluate("document.documentElement.scrollWidth") == viewport["width"]


async def test_a_temporary_chat_is_in_no_sidebar_in_no_tab(alice):
    other = await alice.open()
    page = await open_temporary_chat(alice)
    await send(page, "Remember that I am vegan.")
    await answered(page)
    assert "unless you go on writing" in await page.inner_text(".temporary-banner")
    assert await page.locator(".temporary-switch").count() == 0
    await send(page, "And another message")
    await answers_are_there(page, 2)
    conversation_id = conversation_id_of(page)
    # What the other tab hears of later has come after what it heard of the temporary chat.
    await send(other, "An ordinary chat")
    await answered(other)
    for tab in (page, other):
        await tab.wait_for_selector(".conversation-row__title >> text=An ordinary chat")
        assert await tab.locator(".conversation-row").count() == 1
    await page.reload()
    await page.wait_for_selector(".temporary-banner")
    assert await page.locator(".message--answer").count() == 2
    assert conversation_id_of(page) == conversation_id
    await page.goto(alice.site.url + "/memories")
    assert "Nothing is remembered yet." in await page.inner_text("main")


async def test_a_temporary_chat_can_be_deleted_before_its_time(alice):
    page = await open_temporary_chat(alice)
    await send(page, "Hush")
    await answered(page)
    address = page.url
    await page.click(".temporary-banner summary")
    await page.click("button:text('Delete for good')")
    await page.wait_for_url(alice.site.url + "/")
    assert (await page.goto(address)).status == 404
    alice.complaints.clear()  # Chromium reports the 404


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 800}, PHONE], ids=["desk", "phone"])
async def test_axe_finds_nothing_in_a_temporary_chat_and_a_thumb_can_use_it(person_at, colours, viewport):
    person = await person_at(bypass_csp=True, color_scheme=colours, reduced_motion="reduce", viewport=viewport)
    page = await open_temporary_chat(person)
    await check_accessibility(page)
    await send(page, "Hush")
    await answered(page)
    await page.click(".temporary-banner summary")
    await check_accessibility(page)
    assert await page.evaluate(SMALL_TARGETS) == []
    assert await page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
