"""The fleet in the admin, as staff see it."""

import asyncio
import json

import pytest_asyncio

FLEET = "/admin/inference/replica/fleet/"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def staff(site):
    command = "from tests.browser.people import make_staff; make_staff('fleet@example.com')"
    return json.loads(await asyncio.to_thread(site.manage, "shell", "--no-imports", "-c", command))


async def test_a_replica_is_drained_and_put_back_at_a_phones_width(staff, person_at, site):
    person = await person_at(staff, viewport={"width": 390, "height": 844}, color_scheme="dark")
    page = await person.context.new_page()
    await page.goto(site.url + FLEET)
    replica = page.locator(".fleet-table tr", has_text=site.twin.url)
    assert await page.evaluate("document.documentElement.scrollWidth") == 390
    await replica.get_by_role("button", name="Drain").click()
    await say_why(page)
    await replica.locator(".fleet-state--draining").wait_for()
    await replica.get_by_role("button", name="Undrain").click()
    await say_why(page)
    await replica.locator(".fleet-state--healthy").wait_for()


async def say_why(page):
    await page.get_by_label("Why?").fill("As agreed in ticket 4711.")
    await page.get_by_role("button", name="Confirm").click()


async def test_the_page_follows_what_happens_while_it_is_looked_at(staff, person_at, site):
    person = await person_at(staff)
    page = await person.context.new_page()
    await page.goto(site.url + FLEET)
    replica = page.locator(".fleet-table tr", has_text=site.twin.url)
    await asyncio.to_thread(site.manage, "drain_replica", site.twin.url)
    await replica.locator(".fleet-state--draining").wait_for(timeout=15_000)
    await asyncio.to_thread(site.manage, "drain_replica", site.twin.url, "--undo")
    await replica.locator(".fleet-state--healthy").wait_for(timeout=15_000)
