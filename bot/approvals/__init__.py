"""The life of a proposal: a write becomes a card, people decide, it runs.

In the order of that life: `arrive.py`, `gate.py`, `drafts.py`, `presses.py`, `decide.py`, `votes.py`,
`execute.py`, `lifecycle.py`, `grants.py`. Nothing here knows a platform, the web server or the model.
"""
