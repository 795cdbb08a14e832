"""Tools: the interface, the built-in ones, those of MCP servers and a team's own.

Begin with `tool.py`. A tool never asks by itself: the gate does.
"""
