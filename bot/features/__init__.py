"""Features: parts that a person could switch off without Nod being another program. A folder each.

Begin with `feature.py`. The same names in each folder: ``tables``, ``rows`` (queries), ``tools``,
``commands``, ``routes``, ``sweep``, and ``feature``, the one value that says what it brings. A feature
imports the kernel and no other feature; the kernel imports none. ``bot/app.py`` lists them.
"""
