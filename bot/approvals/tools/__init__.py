"""Tools of the model that are about Nod itself: the team and plans, decisions of people, long outputs.

Begin with `team.py`. None of them approves anything.
"""
