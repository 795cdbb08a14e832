"""A press, by what it is about: a change, a plan, a question.

Begin with `change.py`. Who may press was checked in `decide.py`.
"""
