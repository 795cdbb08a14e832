"""Channels: how people in chats reach Nod, and how Nod shows what it says.

Begin with `base.py`, what a channel implements, and `delivery/`, which calls them. No channel reads rows of
the core, and none imports another.
"""
