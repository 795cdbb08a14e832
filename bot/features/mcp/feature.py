"""Nod as an MCP server: other agents ask their people through it, at ``/mcp`` and by ``nod mcp``."""

from bot.features.feature import Feature
from bot.features.mcp.mount import McpMount

MCP = Feature(name="mcp", make_service=McpMount)
