"""Nod as an MCP server (Model Context Protocol): other agents ask their people through it.

`MCP` names the service at ``/mcp`` of the running Nod. ``nod mcp`` serves the same over stdio
(``bot/cli/mcp.py``).
"""

from bot.features.feature import Feature
from bot.features.mcp.mount import McpMount

MCP = Feature(name="mcp", make_service=McpMount)
