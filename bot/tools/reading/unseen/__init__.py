"""Text that people who open a file don't see, and how each kind of file hides it.

Begin at ``visibility.py`` for web pages; the others are of one kind of file each. They read no files: a
reader of the folder above asks them about what it has read.
"""
