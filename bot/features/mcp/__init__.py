"""Nod as an MCP server, through which other agents ask people, and call the team's tools.

Begin with `server.py`. The MCP servers that Nod itself calls are in ``bot/tools/mcp``.
"""
