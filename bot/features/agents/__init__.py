"""Agents: programs that call the team's tools for a person. Begin with `routes.py`.

How a call is judged is in ``bot/approvals/agents.py``; over MCP, calls come in through ``bot/features/mcp``.
"""
