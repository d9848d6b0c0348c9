"""The live connection: without a WebSocket, without a network, without an account."""

import asyncio

from tests.browser.conftest import answered, conversation_id_of, directed, send, shown_text_reaches

LONG = "".join(f"Sentence number {number} of this answer. " for number in range(60))


async def test_where_a_websocket_cannot_be_had_the_answer_comes_by_stream(alice):
    await alice.context.route_web_socket("**/v1/live", lambda socket: socket.close())
    page = await alice.context.new_page()
    await page.goto(alice.site.url)
    await page.wait_for_selector("chat-composer:defined")
    async with page.expect_request("**/v1/generations/*/stream*"):
        await send(page, directed("By stream", text=LONG, token_ms=10))
    await shown_text_reaches(page, 100)
    await answered(page)
    assert await page.evaluate("document.querySelector('.message:last-child .prose').textContent") == LONG.strip()


async def test_offline_is_told_and_what_was_missed_comes_after_it(alice):
    page = await alice.open()
    await send(page, directed("Through a tunnel", text=LONG, token_ms=20))
    await shown_text_reaches(page, 60)
    await alice.context.set_offline(True)
    await page.wait_for_selector("text=You are offline.")
    await alice.context.set_offline(False)
    await answered(page)
    assert await page.evaluate("document.querySelector('.message:last-child .prose').textContent") == LONG.strip()
    assert not await page.is_visible("text=You are offline.")
    _, answer = await alice.stored(conversation_id_of(page))
    assert answer["content"] == LONG
    alice.complaints.clear()  # Chromium reports every request that fails while offline


async def test_who_was_signed_out_elsewhere_is_told_and_keeps_the_text(alice):
    page = await alice.open()
    await alice.context.clear_cookies(name="sessionid")
    await send(page, "Do not lose me")
    await page.wait_for_selector(".composer__error >> text=You have been signed out.")
    assert await page.input_value("#content") == "Do not lose me"
    alice.complaints.clear()  # Chromium reports the 401


async def test_a_web_server_that_dies_and_comes_back_costs_the_reader_nothing(alice):
    page = await alice.open()
    await send(page, directed("Through a crash", text=LONG, token_ms=15))
    await shown_text_reaches(page, 60)
    alice.site.kill_web()
    await page.wait_for_selector("text=Reconnecting…")
    await asyncio.to_thread(alice.site.start_web)
    await answered(page)
    assert await page.evaluate("document.querySelector('.message:last-child .prose').textContent") == LONG.strip()
    _, answer = await alice.stored(conversation_id_of(page))
    assert answer["content"] == LONG
    alice.complaints.clear()  # Chromium reports the connections that were refused
