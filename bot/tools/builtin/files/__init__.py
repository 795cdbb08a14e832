"""The files of one workspace as tools.

Begin with `tools.py`. Every path is walked name by name from one open folder.
"""
