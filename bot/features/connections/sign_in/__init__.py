"""Signing in at a server to connect an account: links, pages, the browser's return, whose account it is.

Begin with `connecting.py`, the way from a link to a connection. Each step of a sign-in is stored as a row
(`pending.py`), so any process may take the next step.
"""
