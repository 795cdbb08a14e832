"""Insights: the cost of asking, counted, and rules that would spare some of it. Begin with `counting.py`."""
