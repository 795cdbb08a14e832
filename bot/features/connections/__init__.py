"""Connections: accounts at servers in whose name calls are made, a person's or a place's.

Begin with `port.py`, what the kernel asks, and ``sign_in/``, the way from a link to a connection. Tokens stay
in rows, `access.py` and ``sign_in/``: no list, page, command or tool has one.
"""
