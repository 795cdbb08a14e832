"""The life of a proposal: a call that writes becomes a card, people decide, it runs.

In the order of that life: a message or request comes in (`incoming.py`), its calls are judged (`gate.py`) and
become proposals (`drafts.py`), people press buttons (`presses.py`, `decide.py`, `votes.py`), the call runs
(`execute.py`, `runs.py`). Other transitions that no person makes are in `lifecycle.py`, approvals in advance
in `grants.py`.
Nothing here knows a platform, the web server or the model.
"""
