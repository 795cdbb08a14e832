"""Readers for the answers of model servers: ends, errors, calls, arguments and reasoning.

Begin with `answer.py`; `chat.py` and `responses.py` read the events of the two interfaces. All of it is pure.
Requests are written elsewhere.
"""
