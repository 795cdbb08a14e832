"""Models behind servers that speak Chat Completions or the Responses API.

Begin with `model.py`. What a server sends is bounded before it is parsed.
"""
