"""The built-in issue tracker as tools.

Begin with `tools.py`. Its rows are in `bot/store/issues.py`.
"""
