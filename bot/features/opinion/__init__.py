"""Second opinions: another model's few words on a card, which can ask for one more approval and no less.

Begin with `reviewer.py`, the sweep that asks. `case.py` says what is told, `review.py` judges the answer.
"""
