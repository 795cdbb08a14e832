"""Schemas of tools, written again so that every maker's server accepts them. Pure.

Makers refuse a complete request because of one part of one schema, each for parts of its own: no ``items``, a
list of types, ``anyOf`` next to other keys or at the top, numbers in an ``enum``, a ``$ref``, a pattern. What
is sent has only `type`, `description`, `properties`, `required`, `items`, `enum` of strings, and `anyOf`
alone. The rest is written in those, or in words. Begin with `writer.py`. Sources: the checkers of the tests'
model server.
"""
