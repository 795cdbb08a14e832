"""What a model is sent in ten long conversations, recorded, so that a change of it is read like code.

`conversations.py` has the ten, each over a Nod as shipped and a model server on loopback. `recording.py` puts
the requests into words, `recorded/` holds them. `python -m tests.conversations` records it again.
"""
