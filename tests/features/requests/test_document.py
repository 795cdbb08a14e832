"""What docs/api.md says of scripts that ask is true: the script runs, the check verifies, agents connect."""

import asyncio
import json
import os
import re
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from bot.features.requests import routes as approvals
from bot.jobs.webhooks import PAUSES, sign_webhook
from bot.web import site
from tests.features.mcp.test_agents import opened
from tests.features.requests.test_routes import SECRET, SETTINGS, press
from tests.web.conftest import ANA, Serve

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "api.md").read_text().partition("## Your script asks a human")[2]
TOOLS = {"request_approval", "check_approval", "permission_prompt"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="needs curl and jq")
@pytest.mark.parametrize(("verb", "end", "code"), [("approve", "approved", 0), ("decline", "declined", 1)])
async def test_its_script_waits_for_the_human_and_says_how_it_ended(serve: Serve, verb, end, code):
    [script] = blocks("sh")
    async with serve(**SETTINGS) as nod:
        running = await asyncio.create_subprocess_exec(
            "sh",
            "-c",
            script,
            env={"PATH": os.environ["PATH"], "NOD_URL": nod.url, "NOD_TOKEN": ANA},
            stdout=asyncio.subprocess.PIPE,
        )
        proposal = await opened(nod)
        assert proposal["description"] == "Deploy 1.4 to production"
        assert [f["field"] for f in proposal["preview"]] == ["Version", "From", "Details"]
        await press(nod, proposal, verb)
        out, _ = await running.communicate()
        assert (out.decode().strip(), running.returncode) == (end, code)


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="needs curl and jq")
async def test_its_script_says_why_where_it_may_not_ask(serve: Serve):
    [script] = blocks("sh")
    async with serve(**SETTINGS) as nod:
        running = await asyncio.create_subprocess_exec(
            "sh",
            "-c",
            script,
            env={"PATH": os.environ["PATH"], "NOD_URL": nod.url, "NOD_TOKEN": "of nobody"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await running.communicate()
        assert running.returncode != 0
        assert (out, b"Send a valid token" in err) == (b"", True)


def test_its_check_tells_genuine_call_backs_from_others():
    made: dict[str, Any] = {}
    exec(blocks("python")[0], made)  # noqa: S102 - our own document
    genuine = made["genuine"]
    now, body = datetime.now(UTC), b'{"type": "approval.ended"}'
    for secret in (SECRET, "a plain secret of ours"):
        headers = dict(sign_webhook(secret, "p1-3", now, body))
        assert genuine(secret, headers, body)
        assert not genuine(secret, headers, body + b" ")
        assert not genuine("another secret of theirs", headers, body)
        assert not genuine(secret, headers | {"webhook-id": "p2-3"}, body)
        old = dict(sign_webhook(secret, "p1-3", datetime(2026, 1, 1, tzinfo=UTC), body))
        assert not genuine(secret, old, body)


async def test_its_configurations_connect_an_agent(serve: Serve):
    example, stdio, http = (json.loads(block) for block in blocks("json"))
    assert example["type"] == "approval.ended"
    launch, at = stdio["mcpServers"]["nod"], http["mcpServers"]["nod"]
    assert launch["command"] == "nod"
    async with serve(**SETTINGS) as nod:
        ours = {"NOD_URL": nod.url, "NOD_TOKEN": ANA}
        assert ours.keys() == launch["env"].keys()
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "bot.cli.main", *launch["args"]],
            env=ours | {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        )
        with Path(os.devnull).open("w") as nowhere:  # noqa: ASYNC230 - it has nothing to wait for
            async with Client(stdio_client(parameters, errlog=nowhere)) as client:
                assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        scheme = at["headers"]["Authorization"].partition(" ")[0]
        url = nod.url + at["url"].partition(":8080")[2]
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"{scheme} {ANA}"}) as web,
            Client(streamable_http_client(url, http_client=web)) as client,
        ):
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS


def test_its_numbers_and_fields_are_those_of_the_code():
    for name in approvals.Asking.model_fields:
        assert f"`{name}`" in TEXT
    assert f"wait={site.LONGEST_WAIT}" in TEXT
    assert [pause.total_seconds() for pause in PAUSES[:-1]] == [5, 30, 120, 600, 3600, 6 * 3600]
    assert len(PAUSES) == 7
