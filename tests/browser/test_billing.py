"""The page of plan and invoices in a real browser."""

import pytest

from tests.browser.test_memories import SMALL_TARGETS
from tests.browser.test_pages import check_accessibility

PHONE = {"width": 375, "height": 700}
MAKE = """
from datetime import UTC, datetime
from decimal import Decimal
from accounts.billing import closing, invoices, subscriptions
from accounts.models import Tier, User
fields = {"requests_per_window": 100, "is_offered": True, "description": "For daily work."}
basic, _ = Tier.objects.get_or_create(name="basic", defaults={**fields, "monthly_price": Decimal("9.50")})
pro, _ = Tier.objects.get_or_create(
    name="pro", defaults={**fields, "monthly_price": Decimal("29.00"), "bills_overage": True, "included_usage": 5}
)
user = User.objects.get(email="EMAIL")
subscription = subscriptions.subscribe(user, basic, at=datetime(2026, 9, 16, tzinfo=UTC))
subscriptions.change_plan(subscription, pro, at=datetime(2026, 10, 10, tzinfo=UTC))
closing.close_months(subscription.pk, datetime(2026, 11, 5, tzinfo=UTC))
invoice = user.invoices.earliest("period_start")
invoices.mark_paid(invoice, at=datetime(2026, 11, 6, tzinfo=UTC))
invoices.credit(user.invoices.latest("period_start"), Decimal("2.00"), reason="An outage", by=None)
"""


async def paying(person):
    """Return a tab on the page of somebody who has a plan, invoices and a credit note."""
    person.site.manage("shell", "--no-imports", "-c", MAKE.replace("EMAIL", person.email))
    page = await person.context.new_page()
    await page.goto(person.site.url + "/account/billing")
    return page


async def test_a_plan_is_changed_and_ended_by_hand_without_scripts(person_at):
    person = await person_at(java_script_enabled=False)
    page = await paying(person)
    assert "pro, EUR 29.00 a month" in await page.inner_text("main")
    await page.click("button:text('Choose basic')")
    assert "You are on the plan basic from now on." in await page.inner_text("main")
    await page.click("summary:text('End the plan')")
    await page.click("button:text('End it now')")
    assert "Your plan has ended." in await page.inner_text("main")
    assert "You are on free" in await page.inner_text("main")


async def test_an_invoice_opens_from_the_page(person_at):
    person = await person_at()
    page = await paying(person)
    await page.click(".billing__paper a >> nth=0")
    assert "Invoice " in await page.inner_text("h1")
    assert "Plan pro, October 2026" in await page.inner_text("main")
    path = await page.get_attribute("a:text-is('PDF')", "href")
    answer = await person.context.request.get(person.site.url + path)
    assert (await answer.body()).startswith(b"%PDF-")


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 800}, PHONE], ids=["desk", "phone"])
async def test_axe_finds_nothing_on_the_billing_pages_and_a_thumb_can_use_them(person_at, colours, viewport):
    person = await person_at(bypass_csp=True, color_scheme=colours, reduced_motion="reduce", viewport=viewport)
    page = await paying(person)
    await page.click("summary:text('End the plan')")
    for link in (None, ".billing__paper a >> nth=0"):
        if link:
            await page.click(link)
        await check_accessibility(page)
        assert await page.evaluate(SMALL_TARGETS) == []
        assert await page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
