"""Passkeys with a real browser and its virtual authenticator; keys and security pages at every width."""

import asyncio

import pytest

from tests.browser.people import PASSWORD

WIDTHS = [375, 1280]
NEW_PASSWORD = (
    "from accounts.models import User; user = User.objects.get(email='{email}');"
    f"user.set_password('new-{PASSWORD}'); user.save()"
)
PAGES = ["/account/security", "/account/api-keys", "/accounts/2fa/"]


async def authenticator_of(context, page, *, is_passkey):
    """Plug in an authenticator that is always touched."""
    session = await context.new_cdp_session(page)
    await session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal" if is_passkey else "usb",
        "hasResidentKey": is_passkey,
        "hasUserVerification": is_passkey,
        "isUserVerified": is_passkey,
        "automaticPresenceSimulation": True,
    }
    await session.send("WebAuthn.addVirtualAuthenticator", {"options": options})


async def plain_page(person, path):
    page = await person.context.new_page()
    page.set_default_timeout(15_000)
    await page.goto(local(person.site.url) + path)
    return page


def local(url):
    """Passkeys belong to a host name; an address has none."""
    return url.replace("127.0.0.1", "localhost")


@pytest.fixture
def account(site):
    """Somebody with a password, and with a session on the host that has a name."""
    account = site.people.pop()
    site.manage(
        "shell", "--no-imports", "-c",
        "from accounts.models import User;"
        f"user = User.objects.get(email='{account['email']}'); user.set_password('{PASSWORD}'); user.save()",
    )  # fmt: skip
    return account


async def sign_in(page, site, account):
    await page.goto(local(site.url) + "/accounts/login/")
    await page.fill("input[name=login]", account["email"])
    await page.fill("input[name=password]", PASSWORD)
    await page.click("button:text-is('Sign in')")


async def signed_in_page(person_at, site, account):
    person = await person_at(account)
    page = await plain_page(person, "/accounts/login/")
    await sign_in(page, site, account)
    await page.wait_for_selector("chat-page[data-connection=live] chat-composer:defined")
    return person, page


async def test_a_password_that_was_changed_elsewhere_signs_out_and_keeps_what_is_being_written(
    person_at, site, account
):
    _, page = await signed_in_page(person_at, site, account)
    await page.fill("#content", "Do not lose me")
    await asyncio.to_thread(site.manage, "shell", "--no-imports", "-c", NEW_PASSWORD.format(**account))
    await page.wait_for_selector("text=You have been signed out.")
    await page.click("a:text-is('Sign in again')")
    await page.fill("input[name=login]", account["email"])
    await page.fill("input[name=password]", f"new-{PASSWORD}")
    await page.click("button:text-is('Sign in')")
    await page.wait_for_selector("chat-page[data-connection=live] chat-composer:defined")
    assert await page.input_value("#content") == "Do not lose me"


async def test_whoever_changes_the_password_in_one_tab_goes_on_in_the_other(person_at, site, account):
    person, page = await signed_in_page(person_at, site, account)
    other = await plain_page(person, "/")
    await other.goto(local(site.url) + "/accounts/password/change/")
    await other.fill("input[name=oldpassword]", PASSWORD)
    await other.fill("input[name=password1]", f"new-{PASSWORD}")
    await other.fill("input[name=password2]", f"new-{PASSWORD}")
    await other.click("main button[type=submit]")
    await page.wait_for_selector("chat-page[data-connection=reconnecting]")
    await page.wait_for_selector("chat-page[data-connection=live]")
    await page.fill("#content", '@twin {"text": "Still here."}\nHello')
    await page.press("#content", "Enter")
    await page.wait_for_selector("text=Still here.")
    assert not await page.is_visible("text=You have been signed out.")


async def add_key(page, site, *, is_passkey):
    await page.goto(local(site.url) + "/accounts/2fa/webauthn/add/")
    if "reauthenticate" in page.url:
        await page.fill("input[name=password]", PASSWORD)
        await page.click("main button[type=submit]")
    if is_passkey:
        await page.check("input[name=passwordless]")
    await page.click("[data-passkey=create]")
    await page.wait_for_selector("h1:text-is('Recovery codes')")


async def test_a_passkey_is_added_and_signs_in_without_a_password(person_at, site, account):
    person = await person_at(account)
    page = await plain_page(person, "/accounts/login/")
    await authenticator_of(person.context, page, is_passkey=True)
    await sign_in(page, site, account)
    await page.wait_for_selector("chat-page")
    await add_key(page, site, is_passkey=True)
    await page.goto(local(site.url) + "/account/security")
    await page.click("button:text-is('Sign out everywhere')")
    await page.wait_for_url("**/accounts/login/")
    await page.click("button:text-is('Sign in with a passkey')")
    await page.wait_for_selector("chat-page")


async def test_a_security_key_is_asked_for_after_the_password(person_at, site, account):
    person = await person_at(account)
    page = await plain_page(person, "/accounts/login/")
    await authenticator_of(person.context, page, is_passkey=False)
    await sign_in(page, site, account)
    await page.wait_for_selector("chat-page")
    await add_key(page, site, is_passkey=False)
    await person.context.clear_cookies()
    await sign_in(page, site, account)
    await page.wait_for_selector("h1:text-is('Your second factor')")
    await page.click("[data-passkey=get]")
    await page.wait_for_selector("chat-page")


async def test_a_new_key_can_be_copied_and_revoked(person_at):
    person = await person_at()
    await person.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await person.context.new_page()
    await page.goto(person.site.url + "/account/api-keys")
    await page.fill("input[name=name]", "laptop")
    await page.click("button:text-is('Make a key')")
    secret = await page.input_value("#secret")
    await page.click("[data-copy]")
    await page.wait_for_selector("button:text-is('Copied')")
    assert await page.evaluate("navigator.clipboard.readText()") == secret
    await page.click("a:text-is('Revoke')")
    await page.click("button:text-is('Revoke')")
    await page.wait_for_selector("text=You have none.")


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("width", WIDTHS)
async def test_a_page_fits_and_can_be_touched(person_at, path, width):
    person = await person_at(viewport={"width": width, "height": 800})
    page = await person.context.new_page()
    await page.goto(person.site.url + path)
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    small = await page.evaluate(
        "[...document.querySelectorAll('main button, main a.button, main select, main .field--check')]"
        ".filter(e => e.offsetHeight < 44).map(e => e.outerHTML)"
    )
    assert small == []
