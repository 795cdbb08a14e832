"""Insights: the cost of asking people for approval, in numbers, and rules that would save some of it.

Begin with `cost_report.py`, the report on the cost. `reading_signs.py` counts signs of how people decide, by
their votes and the notes of `reading_notes.py`. `suggestions.py` suggests rules to admins.
"""
