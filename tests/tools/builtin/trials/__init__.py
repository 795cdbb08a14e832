"""Trials of commands: the cage, the copy, what is applied."""
