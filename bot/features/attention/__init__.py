"""Attention: beyond so many cards an hour, what is not urgent reaches a person together, at the half hour.

Begin with `watcher.py`, which is asked when a card is delivered. `release.py` sends what was held. Nothing
here decides: a card that is held can be decided everywhere else.
"""
