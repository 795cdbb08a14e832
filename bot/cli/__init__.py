"""The command line: one file for each group of commands.

Begin with `main.py`, which names every command. What it decides goes through the same gate as in a chat.
"""
