"""The public conformance suite over Nod's MCP client, and over Nod as an MCP server.

It runs where ``npm install @modelcontextprotocol/conformance@0.1.13`` was done in the project's folder, as
``.ci/run`` does, or in the one that ``NOD_TEST_CONFORMANCE`` names. Later versions need a newer Node than
20. What does not apply is left out below, with its reason.
"""

import asyncio
import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.tools.mcp import conformance_client

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SUITE = (
    Path(os.environ.get("NOD_TEST_CONFORMANCE", ROOT))
    / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
)

CLIENT = (
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/resource-mismatch",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
)
NOT_FOR_THE_CLIENT = {
    "sse-retry": "it measures time, which fails on a busy machine; tests of ours break the line instead",
    "auth/metadata-var2": "its metadata names another issuer than was asked, which RFC 8414 forbids",
    "auth/metadata-var3": "the same",
    "auth/basic-cimd": "a client id that is a web address needs Nod to be reachable from the Internet",
    "auth/client-credentials-*": "Nod acts for the person who signed in, never for itself",
    "auth/scope-retry-limit": "it counts what a client asks by itself; a person begins each sign-in",
}
SERVER = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
)
NOT_FOR_THE_SERVER = {
    "tools-call-*": "it calls tools of the suite's own",
    "json-schema-2020-12": "the same",
    "elicitation-*": "the same",
    "server-sse-*": "the same",
    "resources-read-*": "Nod has no resources: what it knows is behind its own sign-in",
    "resources-templates-read": "the same",
    "resources-subscribe": "the same",
    "resources-unsubscribe": "the same",
    "prompts-get-*": "Nod has no prompts",
    "completion-complete": "the same",
    "logging-set-level": "Nod sends no log lines to other agents",
}

installed = pytest.mark.skipif(not SUITE.exists(), reason="the conformance suite is not installed")


async def suite(*words: str) -> str:
    """What the suite says, once it has ended well."""
    running = await asyncio.create_subprocess_exec(
        "node",
        str(SUITE),
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await running.communicate()
    except BaseException:  # else a later test is told of it
        running.kill()
        await running.communicate()
        raise
    text = said.decode()
    assert running.returncode == 0, text[-4000:]
    return text


@installed
@pytest.mark.parametrize("scenario", CLIENT)
async def test_the_client_passes_the_public_suite(scenario: str, tmp_path: Path) -> None:
    async with conformance_client.served(tmp_path) as command:
        await suite("client", "--command", command, "--scenario", scenario, "--timeout", "60000")


@installed
async def test_every_scenario_runs_or_has_its_reason() -> None:
    server, client = re.split("Client scenarios", await suite("list"))
    for text, run, left_out in (
        (server, SERVER, NOT_FOR_THE_SERVER),
        (client, CLIENT, NOT_FOR_THE_CLIENT),
    ):
        named = set(re.findall(r"^  - (\S+)", text, re.MULTILINE))
        assert {each for each in named if not matches(each, left_out)} == set(run)


def matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
