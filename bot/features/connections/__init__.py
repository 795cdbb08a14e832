"""Connections: accounts at other servers in whose name Nod makes calls there.

A connection belongs to a person, or to a place, which is a chat: then an admin of the chat connected the
account. Begin with `port.py`, which the kernel asks for connections, and ``sign_in/``, the way from a link to
a connection. Tokens stay in rows, `access.py` and ``sign_in/``: no list, page, command or tool has one.
"""
