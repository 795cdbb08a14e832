"""The audit log: one chain of hashes over every decision and change.

Begin with `chain.py`. Rows are only added; the names of hashed columns stay.
"""
