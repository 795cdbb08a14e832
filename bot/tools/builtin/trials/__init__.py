"""Commands tried in a closed copy of the workspace, and what they did applied to it.

Begin with `command.py`. What runs here is taken for hostile: nothing of it is trusted, and all of it ends.
"""
