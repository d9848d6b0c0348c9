"""The page of usage and the line of the limits, in a real browser."""

import re

import pytest

from tests.browser.conftest import answered, send
from tests.browser.test_memories import SMALL_TARGETS
from tests.browser.test_pages import check_accessibility

PHONE = {"width": 375, "height": 812}


async def with_usage(person):
    """Return a tab on the page of usage, of somebody who has had one answer."""
    page = await person.open()
    await send(page, "What is the CAP theorem?")
    await answered(page)
    await page.goto(person.site.url + "/account/usage")
    return page


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_axe_finds_nothing_on_the_page(person_at, colours):
    person = await person_at(bypass_csp=True, color_scheme=colours)
    page = await with_usage(person)
    await check_accessibility(page)
    await page.click("text=The days as a table")
    await check_accessibility(page)


async def test_on_a_phone_nothing_scrolls_sideways_and_all_can_be_touched(person_at):
    page = await with_usage(await person_at(viewport=PHONE))
    await page.click("text=The days as a table")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert await page.evaluate(SMALL_TARGETS) == []


async def test_without_scripts_a_range_is_chosen_and_a_table_is_kept(person_at):
    person = await person_at()
    await with_usage(person)
    plain = await person_at({"email": person.email, "session": await session_of(person)}, java_script_enabled=False)
    page = await plain.context.new_page()
    await page.goto(plain.site.url + "/account/usage")
    await page.click("text=90 days")
    assert "from=" in page.url
    assert await page.locator("a[aria-current=true]").inner_text() == "90 days"
    async with page.expect_download() as download:
        await page.locator("text=Download as CSV").first.click()
    assert (await download.value).suggested_filename.startswith("usage-by-day-")


async def session_of(person):
    [session] = [each["value"] for each in await person.context.cookies() if each["name"] == "sessionid"]
    return session


async def test_the_conversations_title_leads_to_it(alice):
    page = await with_usage(alice)
    await page.click("section[aria-labelledby=conversations] th a")
    await page.wait_for_url(re.compile("/c/"))


async def test_times_are_those_of_the_browsers_zone_once_it_has_said_which(person_at):
    page = await (await person_at(timezone_id="Asia/Tokyo")).open()
    await page.wait_for_load_state("networkidle")
    await page.click(".user-button")
    await page.click(".menu__item:text('Usage')")
    await page.wait_for_selector("text=Asia/Tokyo")


async def test_who_has_sent_all_is_told_so_and_when_to_come_again_and_keeps_the_text(person_at, site):
    person = await person_at()
    change = f"from accounts.models import User; User.objects.filter(email='{person.email}').update(tier='tiny')"
    site.manage("shell", "--no-imports", "-c", change)
    page = await person.open()
    await send(page, "The only one")
    await answered(page)
    await page.wait_for_selector("limits-line >> text=You have no messages left.")
    await send(page, "One too many")
    notice = await page.wait_for_selector(".composer__error .notice")
    assert re.search(r"The next can be sent .*\d\d:\d\d\.", await notice.inner_text())
    assert await page.input_value("#content") == "One too many"
    assert any("429" in each for each in person.complaints)
    person.complaints.clear()
