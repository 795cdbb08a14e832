"""One tool that runs a command in the workspace.

Begin with `tools.py` and `risk.py`. What is not understood counts as a write.
"""
