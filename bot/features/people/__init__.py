"""People: linked accounts, and absences. Begin with `link_commands.py`.

Who is who is read in ``bot/store/people.py``.
"""
