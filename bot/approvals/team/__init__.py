"""Teammates, which are agents that a conversation's agent starts for parts of its work, and plans of agents.

Begin with `teammates.py`. Each function is a part of one short transaction.
"""
