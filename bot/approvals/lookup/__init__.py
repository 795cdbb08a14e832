"""Queries for people, each answer limited to what the person who asks may see.

Begin with `proposals.py`. The web, the console's API and commands ask here. Only a few methods change a row,
such as those that rename a conversation or end a session.
"""
