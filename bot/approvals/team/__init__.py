"""Teammates: started, steered by plans, ended.

Begin with `teammates.py`. Each function is a part of one short transaction.
"""
