"""Slack as a channel, over Socket Mode or HTTP.

Begin with `channel.py`. The files have the same names in every channel.
"""
