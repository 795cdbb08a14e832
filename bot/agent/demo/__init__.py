"""The demo model: a scripted model without network.

Begin with `sentences.py`, its one table. Nothing here may run or decide anything.
"""
