"""Paging: a card that no one decides alerts the people on call, by PagerDuty or a webhook.

A rule says which cards page, and when. Begin with `rows.py`, which opens and ends pages, and `pager.py`,
which sends them.
"""
