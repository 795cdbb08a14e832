"""The agent: its work on a conversation, one turn at a time.

A turn lasts from a message, or a decision on its calls, until the agent has answered or must wait for people.
Begin with `loop.py`. No platform and no web server here: what a turn says goes out as events.
"""
