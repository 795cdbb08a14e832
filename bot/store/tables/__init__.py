"""The tables, by aggregate.

Begin with `proposals.py`. A new column needs `make migration`.
"""
