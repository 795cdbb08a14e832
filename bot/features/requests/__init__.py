"""Requests: scripts ask people over HTTP. Begin with `routes.py`."""
