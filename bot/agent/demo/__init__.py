"""The demo model: a scripted model without network, for ``nod demo``.

Begin with `model.py`; the sentences that it understands are tables in `sentences.py`. Nothing here may run or
decide anything.
"""
