"""How fast and how small Nod is, measured beside floors in the same run: ``python -m benchmarks``.

``world.py`` is a Nod as shipped with a driver through its Python API; ``floors.py`` is the least work that
could do the same; ``cycles.py``, ``latency.py``, ``parked.py`` and ``cold.py`` measure. Nothing is kept.
"""
