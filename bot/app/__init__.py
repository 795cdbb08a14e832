"""The composition root: every part is made here and nowhere else, and given what it needs.

Begin with `assembly.py`, which makes the parts of a process, and `app.py`, which starts and stops them. The
core (``bot/core.py``) knows no platform and no feature: channels connect it with chat platforms, and features
add tools, commands, routes, sweeps (work at set times) and hooks (functions that the core calls). Several
processes may work on one database; together they are the cluster.

Commands that need only some of the parts make these by `make_parts`, `hooks_of` and `registry_of`.
"""
