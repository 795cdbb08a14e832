"""AG-UI: conversations for front ends of others.

Begin with `routes.py`. Ids are those of the rows.
"""
