"""Attention: beyond so many cards an hour, cards that are not urgent reach a person together later.

Begin with `watcher.py`, which is asked when a card is delivered, and holds the card back from people who had
enough. `release.py` tells these people later, at the next half hour at the latest. Nothing here decides: a
person may decide a card that is held back from them, in the console for example.
"""
