"""Discord as a channel: interactions over HTTP, the rest by REST.

Begin with `channel.py`. The files have the same names in every channel.
"""
