"""Paging: a card that no one decides calls those on call, by PagerDuty or a webhook.

Begin with `pager.py`.
"""
