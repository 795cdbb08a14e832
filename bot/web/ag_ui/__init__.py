"""AG-UI: conversations for front ends of others.

Begin with `routes.py`. Events have the ids of the stored conversation.
"""
