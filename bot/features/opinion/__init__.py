"""Second opinions: another model says in a few words what a call does, for the people who decide it.

A rule says which calls get an opinion, from which model. The opinion is a line on the card, and may require
one more approval, never fewer. Begin with `reviewer.py`, the sweep that asks. `case.py` says what the model
is told, `review.py` checks its answer.
"""
