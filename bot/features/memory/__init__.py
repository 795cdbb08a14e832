"""Memory: facts that people have Nod remember, for a person, a place or a team.

Begin with `facts.py`, which defines a fact, and `access.py`, the rights of people to see and change facts.
"""
