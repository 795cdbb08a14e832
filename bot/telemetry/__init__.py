"""Logs, traces and what counts as an outage.

Begin with `logs.py`. Every text passes the redaction; nothing here knows what it tells about.
"""
