"""The public conformance suite over Nod as an MCP server."""

import pytest

from tests.tools.mcp.test_conformance import SERVER, installed, suite
from tests.web.conftest import Serve

pytestmark = pytest.mark.slow


@installed
@pytest.mark.parametrize("scenario", SERVER)
async def test_the_server_passes_the_public_suite(serve: Serve, scenario: str) -> None:
    async with serve() as nod:
        await suite("server", "--url", f"{nod.url}/mcp", "--scenario", scenario)
