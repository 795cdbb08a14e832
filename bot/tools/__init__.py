"""What a tool is, the tools Nod brings, those of MCP servers and your own.

Begin with `tool.py`. A tool never asks by itself: the gate does.
"""
