"""Requests: scripts and other agents ask people over HTTP for approval of what they are about to do.

Begin with `routes.py`.
"""
