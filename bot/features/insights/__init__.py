"""Insights: the cost of asking people for approval, in numbers, and rules that would save some of it.

Begin with `counting.py`, the report on the cost. `reading.py` counts signs of how people decide, and
`suggestions.py` suggests rules to admins.
"""
