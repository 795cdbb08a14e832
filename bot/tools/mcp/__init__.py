"""MCP servers as tools.

Begin with `toolset.py` and `server.py`. What a server says of itself lowers
nothing unless the settings trust it.
"""
