"""Delivery of outgoing content: turns, cards and their copies, notices, files.

Begin with `turns.py` and `cards.py`. No platform is known here; a row is committed before anything is shown.
"""
