"""The Connections page: an account is connected by a sign-in and its number, and ended."""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from bot.store.secrets import new_key
from tests.features.connections.conftest import entry, write_config
from tests.features.connections.tracker import Tracker
from tests.web.console.conftest import Serve
from tests.web.console.test_console import violations
from tests.web.console.test_pages import SMALL

pytestmark = pytest.mark.browser


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[Tracker]:
    served, loop = Tracker(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(served.up(), loop).result(20)
    write_config(tmp_path, tracker=entry(served))
    yield served
    asyncio.run_coroutine_threadsafe(served.down(), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(20)
    loop.close()


def test_an_account_is_connected_with_its_number_and_disconnected(
    serve: Serve, new_page: Callable[..., Page], tracker: Tracker
):
    with serve(NOD_MCP_CONFIG="mcp.json", NOD_SECRET_KEY=(new_key(),)) as nod:
        page = new_page(f"{nod.url}#/connections")
        page.get_by_role("button", name="Connect tracker").click()
        with page.context.expect_page() as opened:
            page.get_by_role("link", name="Open the page for tracker").click()
        there = opened.value
        there.get_by_role("button", name="Continue to tracker").click()
        expect(there.get_by_text("You signed in at tracker as octocat, for")).to_be_visible()
        digits = re.search(r"\b\d{6}\b", there.inner_text("main"))
        assert digits
        page.reload()
        waits = page.get_by_role("article", name="A sign-in waits")
        expect(waits).to_contain_text("tracker: octocat")
        waits.get_by_role("textbox").fill(digits[0])
        waits.get_by_role("button", name="Send the number").click()
        word = page.locator("#connections-list .notice-word")
        expect(word).to_contain_text("Connected: As you at tracker (octocat).")
        page.get_by_role("button", name="Disconnect tracker").click()
        page.get_by_role("button", name="Disconnect", exact=True).click()
        expect(word).to_have_text("Disconnected: tracker (octocat).")
        assert not [secret for secret in tracker.people.seen if secret in page.content()]


def test_where_nothing_is_to_be_connected_the_page_says_that(serve: Serve, new_page: Callable[..., Page]):
    with serve() as nod:
        page = new_page(f"{nod.url}#/connections")
        expect(page.get_by_text("No accounts to connect")).to_be_visible()


def look(page: Page, name: str) -> None:
    """Find nothing wrong on a desktop and on the smallest phone."""
    for size, width in (("desktop", {"width": 1280, "height": 800}), ("phone", SMALL)):
        page.set_viewport_size(width)  # type: ignore[arg-type]
        assert violations(page) == [], (name, size)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, size)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_way_to_a_connection_and_back(
    scheme: str,
    serve: Serve,
    new_page: Callable[..., Page],
    tracker: Tracker,
):
    with serve(NOD_MCP_CONFIG="mcp.json", NOD_SECRET_KEY=(new_key(),)) as nod:
        page = new_page(f"{nod.url}#/connections", color_scheme=scheme)
        button = page.get_by_role("button", name="Connect tracker")
        expect(button).to_be_visible()
        look(page, "the offer")
        button.click()
        link = page.get_by_role("link", name="Open the page for tracker")
        expect(link).to_be_visible()
        look(page, "the link")
        with page.context.expect_page() as opened:
            link.click()
        there = opened.value
        there.get_by_role("button", name="Continue to tracker").wait_for()
        look(there, "the question")
        there.get_by_role("button", name="Continue to tracker").click()
        there.get_by_text("You signed in at tracker").wait_for()
        look(there, "the number")
        digits = re.search(r"\b\d{6}\b", there.inner_text("main"))
        assert digits
        page.reload()
        waits = page.get_by_role("article", name="A sign-in waits")
        expect(waits).to_be_visible()
        look(page, "it waits")
        waits.get_by_role("textbox").fill(digits[0])
        waits.get_by_role("button", name="Send the number").click()
        expect(page.locator("#connections-list .notice-word")).to_contain_text("Connected")
        look(page, "connected")
        page.get_by_role("button", name="Disconnect everywhere").click()
        look(page, "everywhere")
