"""Locks: of a process, a conversation, a resource.

Begin with `resource_lock.py`. A lock is taken before what it guards is read.
"""
