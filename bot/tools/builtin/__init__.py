"""The tools that Nod brings: files, shell, issues, containers, web pages.

Begin with `issues.py`. Each group is on only where a setting says so.
"""
