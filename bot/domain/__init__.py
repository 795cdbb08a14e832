"""Values and rules, without input or output.

Begin with `proposals.py` and `policy.py`. The time is passed in; nothing here imports a database or a
platform.
"""
