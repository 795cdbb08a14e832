"""What model servers answer, read in one place: ends, errors, calls, arguments and thoughts.

Begin with `answer.py`; `chat.py` and `responses.py` read the events of the two interfaces. All of it is pure.
What is sent is made elsewhere.
"""
