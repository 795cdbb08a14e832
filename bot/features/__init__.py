"""Features: parts that a person could switch off without Nod being another program. Each has a folder.

Begin with `feature.py`. Modules have the same names in each folder: ``tables``, ``rows`` (queries),
``tools``, ``commands``, ``routes``, ``sweep`` (work at set times), ``status`` (for lists and ``nod doctor``),
and ``feature``, which has the one value with all that the feature adds to Nod. A feature imports the kernel
and no other feature; the kernel imports none. ``bot/app/features.py`` lists the features.
"""
