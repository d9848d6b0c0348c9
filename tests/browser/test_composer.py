"""The composer: keys, drafts, what happens to a text that cannot be sent."""

from tests.browser.conftest import answered, directed, send

COMPOSING_ENTER = """
text => {
  const press = (options) => text.dispatchEvent(
    new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true, ...options}));
  return [press({isComposing: true}), press({keyCode: 229})];
}
"""


async def test_enter_never_sends_while_an_input_method_composes(alice):
    page = await alice.open()
    await page.fill("#content", "にほん")
    assert await page.locator("#content").evaluate(COMPOSING_ENTER) == [True, True]
    assert await page.locator(".message").count() == 0
    assert await page.input_value("#content") == "にほん"


async def test_shift_and_enter_breaks_the_line(alice):
    page = await alice.open()
    await page.fill("#content", "one")
    await page.press("#content", "Shift+Enter")
    await page.keyboard.type("two")
    assert await page.input_value("#content") == "one\ntwo"
    await page.press("#content", "Enter")
    await answered(page)
    assert await page.inner_text(".bubble") == "one\ntwo"


async def test_an_unsent_text_survives_a_reload(alice):
    page = await alice.open()
    await page.fill("#content", "half a thought")
    await page.reload()
    await page.wait_for_selector("chat-composer:defined")
    assert await page.input_value("#content") == "half a thought"


async def test_a_text_that_could_not_be_sent_stays_and_is_sent_once_in_the_end(alice):
    page = await alice.open()
    await page.route("**/c/new/messages", lambda route: route.abort(), times=1)
    await send(page, directed("Through", text="It arrived."))
    await page.wait_for_selector("text=The site cannot be reached right now.")
    assert "Through" in await page.input_value("#content")
    await page.press("#content", "Enter")
    assert await answered(page) == "It arrived."
    assert await page.input_value("#content") == ""
    assert await page.locator(".conversation-row").count() == 1
    alice.complaints.clear()  # Chromium reports the aborted request


async def test_an_answer_lost_on_its_way_is_not_asked_for_twice(alice):
    page = await alice.open()

    async def deliver_and_lose(route):
        await route.fetch()
        await route.abort()

    await page.route("**/c/new/messages", deliver_and_lose, times=1)
    await send(page, directed("Only once", text="One answer."))
    await page.wait_for_selector("text=The site cannot be reached right now.")
    await page.press("#content", "Enter")
    assert await answered(page) == "One answer."
    assert await page.locator(".conversation-row").count() == 1
    alice.complaints.clear()  # Chromium reports the aborted request


async def test_a_reached_limit_is_explained_and_the_text_kept(person_at, site):
    person = await person_at(site.limited)
    page = await person.open()
    await send(page, directed("The only one", text="Done."))
    await answered(page)
    await send(page, "One too many")
    notice = await page.wait_for_selector(".composer__error .notice")
    assert len(await notice.inner_text()) > 20
    assert await page.input_value("#content") == "One too many"
    person.complaints.clear()  # Chromium reports the 429


async def test_a_model_that_is_not_there_yet_is_marked(alice):
    page = await alice.open()
    large = page.locator("option[value=large]")
    assert await large.inner_text() == "large (on its way)"
    assert await large.is_disabled()
    assert await page.input_value("#model") == "small"


async def test_the_composer_waits_for_the_answer_under_way_and_says_so(alice):
    page = await alice.open()
    await send(page, directed("Long", tokens=400, token_ms=20))
    await page.wait_for_selector("chat-answer[data-status=running]")
    await send(page, "Another question")
    await page.wait_for_selector("text=The answer is still being written.")
    assert await page.input_value("#content") == "Another question"
    await page.click("button[aria-label='Stop the answer']")
    await answered(page, "cancelled")
    await page.press("#content", "Enter")
    await page.wait_for_selector(".message:nth-child(4)")
