"""People: accounts that are linked as one person, absences with a stand-in, and accounts that are gone.

Begin with `link_commands.py`. The persons behind accounts are read in ``bot/store/people.py``.
"""
