"""Rows: tables, queries, migrations and the audit log.

Begin with `database.py` (one write, one read) and `tables/`. A function is one short
transaction or a part of one. Nothing here waits for a network.
"""
