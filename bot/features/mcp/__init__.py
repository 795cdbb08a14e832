"""Nod as an MCP server, for other agents. Begin with `server.py`.

Servers that Nod calls are in ``bot/tools/mcp``.
"""
