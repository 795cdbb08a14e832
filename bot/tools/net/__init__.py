"""Which network addresses may be reached, and how much may come back.

Begin with `target.py`. Nothing is connected before its address was checked.
"""
