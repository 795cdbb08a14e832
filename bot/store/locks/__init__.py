"""Locks: of a process, a conversation, a resource.

Begin with `resource_lock.py`. On PostgreSQL a lock is an advisory lock: a number that is locked, not a row. A
lock is taken before what it guards is read.
"""
