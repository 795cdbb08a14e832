"""Signing in at a server to connect an account: links, pages, the return, whose account it is.

Begin with `connecting.py`. Its steps are rows (`under_way.py`), so any process may take the next one.
"""
