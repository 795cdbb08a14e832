"""Nod as an MCP server, and signing in at others.

Begin with `server.py`.
"""
