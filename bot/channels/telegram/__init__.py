"""Telegram as a channel, by polling or a webhook.

Begin with `channel.py`. The files have the same names in every channel.
"""
