"""Signing in with the link that Nod gives in a chat, and out everywhere."""

import pytest
from playwright.sync_api import expect

from tests.channels.http.console.conftest import Serve
from tests.channels.http.console.test_console import NewPage, button

pytestmark = pytest.mark.browser

TOKEN = "ana-0123456789abcdef"


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
