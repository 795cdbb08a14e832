"""Schedules: tasks that the agent does at set times, or once after a decision, in a person's name.

Begin with `schedule.py`, which defines a schedule and its times, and `runs.py`, which begins its runs.
"""
