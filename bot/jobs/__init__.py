"""Jobs and the clock: dispatchers, scheduler, recovery, reminders, webhooks.

Begin with `dispatcher.py`. A job is a wake-up: rows say what there is to do. A *sweep* is work that a process
begins every few seconds: it finds in the rows what is due. Nothing here decides for people.
"""
