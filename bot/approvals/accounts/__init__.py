"""Accounts: how they become one person, and how a person signs in from a chat.

Begin with `linking.py`. Each function is one short transaction.
"""
