"""docs/mcp.md is true: its commands run as they stand."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.tools.mcp.conftest import HttpLamps
from tests.tools.mcp.servers.gatekeeper import Gatekeeper
from tests.web.conftest import Serve
from tests.web.test_mcp_logins import SETTINGS, browse

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "mcp.md").read_text()
SIGNING, READING, SUITE, _ = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)

WIKI = """
from mcp.server import MCPServer
server = MCPServer("wiki", log_level="CRITICAL")
@server.resource("wiki://start")
def start() -> str:
    return "Welcome to the wiki."
server.run("stdio")
"""


async def begun(script: str, folder: Path, **environment: str) -> asyncio.subprocess.Process:
    """A shell that knows the command ``nod``."""
    command = folder / "nod"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m bot.cli.main "$@"\n')
    command.chmod(0o755)
    given = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    return await asyncio.create_subprocess_exec(
        "bash", "-ec", script, cwd=folder, env=given | environment, stdout=asyncio.subprocess.PIPE
    )


async def test_people_sign_in_and_out_with_its_commands(serve: Serve, tmp_path: Path) -> None:
    served = HttpLamps(tmp_path, Gatekeeper())
    await served.up()
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"wiki": {"url": served.url}}}))
    async with serve(NOD_MCP_CONFIG="mcp.json", patience=120, **SETTINGS) as nod:
        shell = await begun(SIGNING, tmp_path, NOD_URL=nod.url, NOD_TOKEN=SETTINGS["token"])
        assert shell.stdout is not None
        assert (await shell.stdout.readline()).startswith(b"Open this page to sign in at wiki.")
        await browse((await shell.stdout.readline()).decode().strip())
        said, _ = await shell.communicate()
        assert said.decode() == "You are signed in at wiki.\nSigned out of wiki.\n"
    await served.down()


@pytest.mark.usefixtures("only_on_sqlite", "serve")  # whose database is there
async def test_a_resource_is_read_with_its_commands(tmp_path: Path) -> None:
    wiki = {"command": sys.executable, "args": ["-c", WIKI], "trust": "trusted"}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"wiki": wiki}}))
    shell = await begun(READING, tmp_path, NOD_MCP_CONFIG="mcp.json")
    said, _ = await shell.communicate()
    assert shell.returncode == 0, said.decode()
    assert "wiki_list_resources" in said.decode()
    assert said.decode().endswith("Welcome to the wiki.\n")


async def test_the_suite_is_installed_as_the_check_on_a_clean_checkout_does_it(tmp_path: Path) -> None:
    install, run = SUITE.strip().splitlines()
    assert install.split()[-1] in (ROOT / ".ci" / "run").read_text()
    shell = await begun(f"cd {ROOT} && {run.replace('make', 'make --dry-run', 1)}", tmp_path)
    said, _ = await shell.communicate()
    assert re.search(r" -m pytest -n auto .*-k conformance$", said.decode().strip())
