"""Tools that are Nod itself: the team, requests, decisions, long outputs.

Begin with `team.py`. None of them approves anything.
"""
