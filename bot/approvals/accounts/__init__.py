"""Accounts of people: how several become one Person, how someone signs in, and how rights end with them.

Begin with `linking.py`. Most functions are one short transaction each.
"""
