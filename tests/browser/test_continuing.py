"""An answer that was stopped goes on in its place, as one answer."""

from tests.browser.conftest import answered, conversation_id_of, directed, send, shown_text_reaches

TEXT = "".join(f"Sentence number {number} of this answer. " for number in range(12)).strip()


async def test_a_stopped_answer_goes_on_in_its_place_and_is_copied_as_one(alice):
    await alice.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await alice.open()
    await send(page, directed("Tell me.", text=TEXT, token_ms=20))
    await shown_text_reaches(page, 40)
    await page.click("button[aria-label='Stop the answer']")
    await answered(page, "cancelled")
    first_id = await page.get_attribute(".message:last-child", "data-message-id")
    await page.click(".message:last-child .answer__continue button")
    await page.wait_for_selector(f".message--answer:last-child:not([data-message-id='{first_id}'])")
    assert await answered(page) == TEXT
    assert await page.locator(".message").count() == 2
    assert not await page.is_visible(".answer__continue")
    await page.click(".message:last-child [aria-label='Copy the answer']")
    await page.wait_for_selector("[data-action=copy][data-done]")
    assert await page.evaluate("navigator.clipboard.readText()") == TEXT
    *_, rest = await alice.stored(conversation_id_of(page))
    assert TEXT.endswith(rest["content"])
    assert len(rest["content"]) < len(TEXT)
    await page.reload()
    assert await answered(page) == TEXT


async def test_an_answer_leads_to_what_its_model_saw(alice):
    page = await alice.open()
    await send(page, directed("Hello", text="An answer."))
    await answered(page)
    await page.click(".message:last-child [aria-label='What the model saw']")
    await page.wait_for_selector("h1:text('What the model saw')")
    await page.click("text=Back to the conversation")
    assert await answered(page) == "An answer."
