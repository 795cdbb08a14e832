"""Readers of the kinds of file that people send, for the child process of ``bot/tools/documents.py``.

Begin at ``child.py``. Each other module reads one family of files with its libraries, and tells a `Report`
what it leaves out. Nod's own process imports no reader: their libraries meet strangers' bytes, so what they
do ends with the child.
"""
