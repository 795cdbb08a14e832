"""Mutes: a person is not told of the cards of a tool for a while, and may decide them all the same.

Begin with `muting.py`, which the kernel asks when a card is delivered. A person mutes with a button on the
card, which adds a row for this person and does not change the proposal, or with the command ``/nod mutes``.
"""
