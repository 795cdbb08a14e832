"""Schedules: tasks that come back by themselves. Begin with `runs.py`; `schedule.py` says what one is."""
