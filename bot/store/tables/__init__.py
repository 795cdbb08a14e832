"""The tables, by what they are about; features, and some modules of the store, have tables of their own.

Begin with `proposals.py`. A new column needs `make migration`.
"""
