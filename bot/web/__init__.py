"""The web server: the HTTP API, the console, sign-in, AG-UI and MCP.

Begin with `api.py`. Routes look things up in `bot/approvals/lookup/` and hand in what
they take. They read no rows.
"""
