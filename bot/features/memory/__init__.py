"""Memory: facts that people have Nod keep. Begin with `access.py`; `facts.py` says what one is."""
