"""MCP servers in the console: an admin signs in at one, in a real browser."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.tools.mcp.conftest import HttpLamps
from tests.tools.mcp.servers.gatekeeper import Gatekeeper
from tests.web.console.conftest import Serve

pytestmark = pytest.mark.browser


@pytest.fixture
def lamps(tmp_path: Path) -> Iterator[HttpLamps]:
    served, loop = HttpLamps(tmp_path, Gatekeeper()), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(served.up(), loop).result(20)
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"lamps": {"url": served.url}}}))
    yield served
    asyncio.run_coroutine_threadsafe(served.down(), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(20)
    loop.close()


def test_an_admin_signs_in_at_an_mcp_server_and_out_again(
    serve: Serve, new_page: Callable[..., Page], lamps: HttpLamps
):
    with serve(NOD_MCP_CONFIG="mcp.json") as nod:
        page = new_page(f"{nod.url}#/rules")
        card = page.get_by_role("article", name="MCP server lamps")
        expect(card).to_contain_text("No one is signed in.")
        card.get_by_role("button", name="Sign in at lamps").click()
        with page.context.expect_page() as opened:
            card.get_by_role("link", name="Open the sign-in page").click()
        expect(opened.value.get_by_text("You are signed in at lamps.")).to_be_visible()
        expect(page.locator(".card-word")).to_have_text("You are signed in at lamps.")
        expect(card).to_contain_text("Signed in by http:local just now")
        assert lamps.gatekeeper
        assert len(lamps.gatekeeper.granted) == 1
        card.get_by_role("button", name="Sign out of lamps").click()
        expect(card).to_contain_text("No one is signed in.")
