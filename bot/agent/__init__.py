"""The agent: one turn at a time, from a message or a decision until it is silent or must wait.

Begin with `loop.py`. No platform and no web server here: what a turn says goes out as events.
"""
