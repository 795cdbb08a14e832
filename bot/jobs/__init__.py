"""Jobs and the clock: dispatchers, scheduler, recovery, reminders, webhooks.

Begin with `dispatcher.py`. A job is a wake-up: rows say what there is to do, and nothing here decides.
"""
