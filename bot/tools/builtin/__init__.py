"""The tools that Nod brings: files, shell, issues, containers, web pages.

Begin with `fetch.py`. Each group is on only where a setting says so.
"""
