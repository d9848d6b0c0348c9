"""A message and its answer, as somebody at a browser lives through it."""

import asyncio

from tests.browser.conftest import answered, conversation_id_of, directed, send, shown_text_reaches

LONG = "".join(f"Sentence number {number} of this answer. " for number in range(60))


async def test_an_answer_is_read_while_it_is_written_across_a_reload_and_ends_as_it_is_stored(alice):
    page = await alice.open()
    await send(page, directed("Tell me a lot.", text=LONG, token_ms=5))
    await page.wait_for_url("**/c/*")
    before = await shown_text_reaches(page, 200)
    await page.reload()
    after = await shown_text_reaches(page, len(before))
    assert LONG.startswith(after.strip()[: len(before) - 1])
    await answered(page)
    _, answer = await alice.stored(conversation_id_of(page))
    assert answer["content"] == LONG
    assert await page.evaluate("document.querySelector('.message:last-child .prose').textContent") == LONG.strip()


async def test_stop_closes_the_model_servers_connection_and_keeps_what_was_shown(alice):
    page = await alice.open()
    await send(page, directed("Tell me more.", text=LONG, token_ms=20))
    shown = await shown_text_reaches(page, 40)
    await page.click("button[aria-label='Stop the answer']")
    kept = await answered(page, "cancelled")
    report = await asyncio.to_thread(alice.site.twin.wait, open=0)
    assert report["requests"][-1]["closed_by"] == "client"
    _, answer = await alice.stored(conversation_id_of(page))
    assert answer["finish_reason"] == "cancelled"
    assert answer["content"].startswith(shown)
    assert answer["content"].strip() == kept.strip()
    assert await page.is_visible("text=You stopped this answer.")


async def test_escape_stops_and_the_composer_has_the_focus(alice):
    page = await alice.open()
    await send(page, directed("More.", text=LONG, token_ms=20))
    await shown_text_reaches(page, 20)
    await page.press("body", "Escape")
    await answered(page, "cancelled")
    assert await page.evaluate("document.activeElement.id") == "content"
    assert await page.is_visible("button[aria-label=Send]")


async def test_send_becomes_stop_in_place_and_back(alice):
    page = await alice.open()
    await page.fill("#content", directed("Hello", text=LONG, token_ms=10))
    send_button = await page.locator("button[aria-label=Send]").bounding_box()
    await page.click("button[aria-label=Send]")
    await page.wait_for_selector("button[aria-label='Stop the answer']")
    stop_button = await page.locator("button[aria-label='Stop the answer']").bounding_box()
    assert (stop_button["width"], stop_button["x"]) == (send_button["width"], send_button["x"])
    assert not await page.is_visible("button[aria-label=Send]")
    await page.click("button[aria-label='Stop the answer']")
    await page.wait_for_selector("button[aria-label=Send]")


async def test_a_link_to_a_message_scrolls_the_conversation_and_never_the_page(alice):
    page = await alice.open()
    await send(page, directed("Tell me a lot.", text=LONG.replace(". ", ".\n\n"), token_ms=1))
    await answered(page)
    await send(page, "And now?")
    await page.wait_for_selector(".message:nth-child(4) chat-answer[data-status=complete]")
    _, answer, *_ = await alice.stored(conversation_id_of(page))
    await alice.visit(page, f"/c/{conversation_id_of(page)}#m-{answer['message_id']}")
    assert await page.evaluate("document.documentElement.scrollHeight - innerHeight") == 0
    top_bar = await page.locator(".top-bar").bounding_box()
    linked = await page.locator(f"#m-{answer['message_id']}").bounding_box()
    assert top_bar["y"] == 0
    assert top_bar["height"] - 1 <= linked["y"] < 400


async def test_two_tabs_of_one_person_show_the_same_live(alice):
    first = await alice.open()
    await send(first, directed("Hello", text="The first answer."))
    await answered(first)
    second = await alice.open(f"/c/{conversation_id_of(first)}")
    await send(first, directed("And again", text=LONG, token_ms=10))
    await shown_text_reaches(second, 100)
    assert await second.locator(".message").count() == 4
    assert await answered(first) == await answered(second)


async def test_a_conversation_begun_in_one_tab_is_listed_in_the_other_with_its_dot(alice):
    first, second = await alice.open(), await alice.open()
    await send(first, directed("Listed everywhere", text=LONG, token_ms=15))
    await second.wait_for_selector(".conversation-row[data-answering]")
    await first.click("button[aria-label='Stop the answer']")
    await second.wait_for_selector(".conversation-row:not([data-answering])")


async def test_switching_to_another_conversation_is_not_leaving(alice):
    page = await alice.open()
    await send(page, directed("Go on without me", text=LONG, token_ms=15))
    await shown_text_reaches(page, 20)
    conversation_id = conversation_id_of(page)
    await alice.visit(page, "/")
    await page.wait_for_selector(".conversation-row:not([data-answering])", timeout=30_000)
    _, answer = await alice.stored(conversation_id)
    assert answer["content"] == LONG
    assert answer["finish_reason"] == "stop"


async def test_another_answer_takes_the_place_of_the_last(alice):
    page = await alice.open()
    await send(page, directed("Hello", text="An answer."))
    await answered(page)
    first_id = await page.get_attribute(".message:last-child", "data-message-id")
    await page.click(".message:last-child [aria-label='Write another answer']")
    await page.wait_for_selector(f".message--answer:last-child:not([data-message-id='{first_id}'])")
    assert await answered(page) == "An answer."
    assert await page.locator(".message").count() == 2


async def test_the_copied_answer_is_the_exact_source(alice):
    source = "**Bold**, `code` and\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n$10K and <b>text</b>"
    await alice.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await alice.open()
    await send(page, directed("Copy", text=source))
    await answered(page)
    await page.click(".message:last-child [aria-label='Copy the answer']")
    await page.wait_for_selector("[data-action=copy][data-done]")
    assert await page.evaluate("navigator.clipboard.readText()") == source
    await page.reload()
    await page.wait_for_selector("chat-answer:defined")
    await page.click(".message:last-child [aria-label='Copy the answer']")
    assert await page.evaluate("navigator.clipboard.readText()") == source
