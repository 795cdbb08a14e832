"""Signing in with the link from a chat or with the organisation's accounts, and out everywhere."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.fakes.oidc_provider import CLIENT, SECRET, FakeProvider
from tests.torture.nods import free_port
from tests.web.console.conftest import Serve
from tests.web.console.test_console import NARROW, NewPage, button, violations

pytestmark = pytest.mark.browser

TOKEN = "ana-0123456789abcdef"
KIM = {"sub": "1", "email": "kim@example.com", "email_verified": True, "name": "Kim Lee"}


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    """It is at another site than Nod, as in the world: a browser sends no strict cookie along from there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="provider")
    thread.start()
    made = FakeProvider("")
    made.person = dict(KIM)
    asyncio.run_coroutine_threadsafe(made.start(), loop).result(10)
    made.url = made.url.replace("127.0.0.1", "localhost")
    yield made
    asyncio.run_coroutine_threadsafe(made.stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def test_a_link_signs_a_browser_in_once_and_you_sign_out_everywhere(serve: Serve, new_page: NewPage):
    with serve(NOD_HTTP_TOKENS=(f"ana:{TOKEN}",), token=TOKEN) as nod:
        said = nod.client.post("api/commands", json={"name": "nod", "text": "console"}).json()["text"]
        address = said.partition("\n")[0]
        page = new_page(address)
        button(page, "Sign in").click()
        expect(page.get_by_role("link", name="Signed in as ana")).to_be_visible()
        page.reload()
        page.get_by_role("link", name="Signed in as ana").click()
        expect(page.locator("#you-list")).to_contain_text("http:ana")
        late = new_page(address)
        button(late, "Sign in").click()
        expect(late.get_by_role("alert")).to_contain_text("This link was used or is too old.")
        button(page, "Sign out everywhere").click()
        expect(page.get_by_label("Access token")).to_be_visible()


def _organised(provider: FakeProvider, **more: Any) -> dict[str, Any]:
    port = free_port()
    provider.back = f"http://127.0.0.1:{port}/api/session/back"
    return {
        "NOD_PORT": port,
        "NOD_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "NOD_OIDC_NAME": "Example Ltd",
        "NOD_OIDC_ISSUER": provider.url,
        "NOD_OIDC_CLIENT_ID": CLIENT,
        "NOD_OIDC_CLIENT_SECRET": SECRET,
        "NOD_OIDC_ALLOWED": ("example.com",),
        **more,
    }


@pytest.mark.parametrize("size", [{}, NARROW], ids=["desktop", "phone"])
def test_the_organisations_account_signs_in_and_out(
    size: dict[str, int], serve: Serve, new_page: NewPage, provider: FakeProvider
):
    with serve(**_organised(provider, NOD_ADMINS=("http:sso.kim@example.com",))) as nod:
        page, other = new_page(nod.url, **size), new_page(nod.url, color_scheme="dark")
        for each in (page, other):
            expect(each.get_by_role("link", name="Sign in with Example Ltd")).to_be_visible()
            assert violations(each) == []
            each.get_by_role("link", name="Sign in with Example Ltd").click()
            expect(each.locator("#who")).to_have_text("Signed in as Kim Lee")
        page.goto(f"{nod.url}#/you")
        expect(page.locator("#you-list")).to_contain_text("http:sso.kim@example.com")
        button(page, "Sign out everywhere").click()
        expect(page.get_by_role("link", name="Sign in with Example Ltd")).to_be_visible()
        other.reload()
        expect(other.get_by_role("link", name="Sign in with Example Ltd")).to_be_visible()


def test_who_the_organisation_does_not_name_is_told_and_stays_out(
    serve: Serve, new_page: NewPage, provider: FakeProvider
):
    with serve(**_organised(provider)) as nod:
        provider.person |= {"email": "eve@elsewhere.example"}
        page = new_page(nod.url)
        page.get_by_role("link", name="Sign in with Example Ltd").click()
        expect(page.locator("body")).to_contain_text(
            "You can't sign in to this Nod. Ask an admin to add you."
        )
        page.goto(nod.url)
        expect(page.get_by_label("Access token")).to_be_visible()
