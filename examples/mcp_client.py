"""An MCP client that asks people before it calls a tool. Needs: nod-client, mcp, NOD_URL and NOD_TOKEN.

python examples/mcp_client.py
"""

import asyncio

from mcp import Client
from mcp.server import MCPServer

from nod_client import AsyncNod
from nod_client.mcp import Approvals

server = MCPServer("deployer", log_level="ERROR")  # stands for any server, over any transport


@server.tool()
async def deploy(version: str) -> str:
    """Deploy a version to production."""
    return f"{version} is out"


async def main() -> None:
    async with AsyncNod() as nod, Client(server) as client:
        approvals = Approvals(nod, unasked=("list_*", "read_*"))
        result = await approvals.call_tool(client, "deploy", {"version": "1.4"})
    print(result.content[0].text)


asyncio.run(main())
