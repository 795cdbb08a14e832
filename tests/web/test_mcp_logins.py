"""Signing in at an MCP server through the running Nod: from the API and from the command line."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from bot.cli.main import main
from tests.tools.mcp.conftest import HttpLamps
from tests.tools.mcp.servers.gatekeeper import Gatekeeper
from tests.tools.mcp.servers.plain import Plain
from tests.web.conftest import ANA, CHIEF, TOKENS, Serve, Served

ROOT = Path(__file__).parents[2]
SETTINGS = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",), "token": CHIEF}

pytestmark = pytest.mark.slow


@pytest.fixture
async def lamps(tmp_path: Path) -> AsyncIterator[HttpLamps]:
    served = HttpLamps(tmp_path, Gatekeeper())
    await served.up()
    servers = {"lamps": {"url": served.url}, "local": {"command": "no-such-program"}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    yield served
    await served.down()


@pytest.fixture
def plain() -> Iterator[Plain]:
    served = Plain()
    yield served
    served.down()


async def browse(url: str) -> httpx.Response:
    """Open the page in a browser, which agrees and is sent back to Nod."""
    async with httpx.AsyncClient(follow_redirects=True, timeout=20) as browser:
        return await browser.get(url, headers={"Sec-Fetch-Site": "cross-site"})


async def signed_in(nod: Served) -> bool:
    [lamps, local] = (await nod.client.get("/api/mcp")).json()["servers"]
    assert local["sign_in"] is None
    return bool(lamps["sign_in"]["signed_in"])


async def test_an_admin_signs_in_by_the_page_that_the_api_gives_and_out_again(serve: Serve, lamps: HttpLamps):
    async with serve(NOD_MCP_CONFIG="mcp.json", **SETTINGS) as nod:
        assert not await signed_in(nod)
        begun = (await nod.client.post("/api/mcp/lamps/login")).json()
        page = await browse(begun["url"])
        assert (page.status_code, "You are signed in at lamps." in page.text) == (200, True)
        ended = await nod.client.get(f"/api/mcp/logins/{begun['id']}")
        assert ended.json() == {"ok": True, "text": "You are signed in at lamps."}
        assert await signed_in(nod)
    async with serve(NOD_MCP_CONFIG="mcp.json", **SETTINGS) as nod:
        assert await signed_in(nod)
        out = await nod.client.delete("/api/mcp/lamps/login")
        assert out.json()["text"] == "Signed out of lamps."
        assert not await signed_in(nod)


async def test_only_an_admin_signs_in_and_only_where_there_is_a_sign_in(serve: Serve, lamps: HttpLamps):
    async with serve(NOD_MCP_CONFIG="mcp.json", **SETTINGS) as nod:
        async with nod.caller(ANA) as ana:
            assert (await ana.post("/api/mcp/lamps/login")).status_code == 403
            assert (await ana.get("/api/mcp")).status_code == 403
        for name in ("nowhere", "local"):
            assert (await nod.client.post(f"/api/mcp/{name}/login")).status_code == 404
        assert (await nod.client.get("/api/mcp/logins/x")).status_code == 409
        page = await browse(f"{nod.url}/oauth/callback?code=<script>&state=<script>")
        assert page.status_code == 400
        assert "<script>" not in page.text
        await lamps.down()
        fault = await nod.client.post("/api/mcp/lamps/login")
        assert (fault.status_code, "can't be reached" in fault.json()["error"]) == (409, True)
        await lamps.up()


async def test_the_command_line_prints_the_page_and_ends_when_the_person_was_there(
    serve: Serve, lamps: HttpLamps
):
    async with serve(NOD_MCP_CONFIG="mcp.json", patience=120, **SETTINGS) as nod:
        given = {"NOD_URL": nod.url, "NOD_TOKEN": CHIEF}

        async def ended(*words: str, **more: str | None) -> Result:
            return await asyncio.to_thread(CliRunner().invoke, main, ("mcp", *words), env=given | more)

        login = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot.cli.main", "mcp", "login", "lamps"),
            env=given | {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
            stdout=asyncio.subprocess.PIPE,
        )
        assert login.stdout is not None
        first = (await login.stdout.readline()).decode()
        assert first == "Open this page to sign in at lamps. It works for 10 min.\n"
        page = await browse((await login.stdout.readline()).decode().strip())
        assert page.status_code == 200
        out, _ = await login.communicate()
        assert (login.returncode, out.decode()) == (0, "You are signed in at lamps.\n")
        assert (await ended("logout", "lamps")).output == "Signed out of lamps.\n"
        assert "set NOD_TOKEN to one of its tokens" in (await ended("login", "lamps", NOD_TOKEN=None)).output
        lost = await ended("login", "nowhere")
        assert (lost.exit_code, lost.stderr) == (1, "nod: There is no MCP server nowhere. See: nod doctor\n")


async def test_a_server_that_is_down_says_so_to_everyone_who_looks_and_comes_back(
    serve: Serve, tmp_path: Path, plain: Plain
):
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": {"url": plain.url}}}))
    plain.down()
    async with serve(NOD_MCP_CONFIG="mcp.json", **SETTINGS) as nod:

        async def fault() -> str:
            [server] = (await nod.client.get("/readyz")).json()["mcp_servers"]
            return str(server["fault"])

        [server] = (await nod.client.get("/api/mcp")).json()["servers"]
        assert server["trouble"] == "it can't be reached"
        assert await fault() == "It is unavailable. The console and the log say why."
        plain.up()
        async with asyncio.timeout(30):
            while await fault():  # noqa: ASYNC110 - another task does it
                await asyncio.sleep(0.1)
        [server] = (await nod.client.get("/api/mcp")).json()["servers"]
        assert (server["trouble"], server["tools"]) == (None, 2)
