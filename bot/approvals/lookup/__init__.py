"""Read-only queries for people, each answer limited to what they may see.

Begin with `proposals.py`. Nothing here changes a row.
"""
