"""The Connections page: an account is connected by a sign-in and its number, and ended."""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from sqlmodel import Session

from bot.domain.connections import Identity
from bot.domain.times import now
from bot.features.connections import resting
from bot.features.connections.tables import ConnectionRow
from bot.store import state
from bot.store.secrets import encrypt_in, new_key
from tests.features.connections.conftest import entry, write_config
from tests.features.connections.tracker import Tracker
from tests.web.console.conftest import Serve
from tests.web.console.test_console import violations
from tests.web.console.test_pages import SMALL

pytestmark = pytest.mark.browser
CUT_OFF = """[...document.querySelectorAll("main article *")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth).map((each) => each.textContent)"""
"""The texts on cards that reach beyond the right edge."""
RESTS = (
    "Rests: people of another company read along in its chat, "
    "and who connected it is no longer an admin there."
)


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


def add_resting(session: Session, url: str) -> None:
    """Add the account of a chat that rests for each reason that there is."""
    ident = "5e" * 16
    row = ConnectionRow(
        id=ident,
        server="tracker",
        url=url,
        identity=Identity.PLACE,
        owner="slack:T1/C1",
        owner_name="#incidents",
        accounts=[],
        name="team-bot",
        issuer="https://tracker.example",
        subject="7",
        client=encrypt_in(session, ConnectionRow, "client", ident, "{}"),
        tokens=encrypt_in(session, ConnectionRow, "tokens", ident, "{}"),
        found="{}",
        connected_by="slack:T1/U7",
        connected_at=now(),
    )
    session.add(row)
    state.store_state(session, resting.STATE_NAMESPACE, ident, {"why": ["shared", "admin"]}, now())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_account_of_a_chat_says_why_it_rests(
    scheme: str,
    serve: Serve,
    new_page: Callable[..., Page],
    tracker: Tracker,
    tmp_path: Path,
):
    write_config(tmp_path, tracker=entry(tracker, identity="place"))
    with serve(NOD_MCP_CONFIG="mcp.json", NOD_SECRET_KEY=(new_key(),)) as nod:
        nod.app.database.write_now(add_resting, tracker.url)
        page = new_page(f"{nod.url}#/connections", color_scheme=scheme)
        expect(page.get_by_text(RESTS)).to_be_visible()
        look(page, "it rests")


def look(page: Page, name: str) -> None:
    """Find nothing wrong on a desktop and on the smallest phone."""
    for size, width in (("desktop", {"width": 1280, "height": 800}), ("phone", SMALL)):
        page.set_viewport_size(width)  # type: ignore[arg-type]
        assert violations(page) == [], (name, size)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, size)
        assert page.evaluate(CUT_OFF) == [], (name, size)


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
