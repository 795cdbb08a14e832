"""The public conformance suite over Nod's MCP client.

Set ``NOD_TEST_CONFORMANCE`` to a folder with ``npm install @modelcontextprotocol/conformance@0.1.13`` in it;
later versions need a newer Node than 20. What does not apply is named with the reason.
"""

import asyncio
import os
import shlex
import sys
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
    "sse-retry",
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
NOT_APPLICABLE = {
    "auth/basic-cimd": "a client id that is a web address needs Nod to be reachable from the Internet",
    "auth/client-credentials-jwt": "Nod acts for the person who signed in, never for itself",
    "auth/client-credentials-basic": "the same",
    "auth/scope-retry-limit": "it counts what a client asks by itself; a person begins each sign-in",
}
NOT_YET = {
    "auth/metadata-var2": "its metadata names another issuer than was asked, which RFC 8414 forbids",
    "auth/metadata-var3": "the same",
}


@pytest.mark.skipif(not SUITE.exists(), reason="the conformance suite is not installed")
@pytest.mark.parametrize("scenario", CLIENT)
async def test_the_client_passes_the_public_suite(scenario: str) -> None:
    command = shlex.join([sys.executable, str(conformance_client.__file__)])
    words = ("client", "--command", command, "--scenario", scenario, "--timeout", "60000")
    given = {**os.environ, "PYTHONPATH": str(ROOT)}
    suite = await asyncio.create_subprocess_exec(
        "node",
        str(SUITE),
        *words,
        env=given,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await suite.communicate()
    assert suite.returncode == 0, said.decode()[-4000:]
