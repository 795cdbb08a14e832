"""What people may look up, each answer checked against who asks.

Begin with `proposals.py`. Nothing here changes a row.
"""
