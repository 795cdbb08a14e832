"""Values and rules, without input or output.

Begin with `proposals.py` and `policy.py`. The time is passed in. Nothing here reads a row or calls a
platform; ``hooks.py`` and ``connection_port.py`` only describe functions of others that do.
"""
