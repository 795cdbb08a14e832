"""Mutes: a person is not told of a kind of card for a while, and may decide it all the same.

Begin with `muting.py`, which is asked when a card is delivered. The button is a verb of the kernel; what it
does here is a row for the person who pressed it, and no change of the proposal.
"""
