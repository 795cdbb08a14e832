"""Others that do a cycle, each a process of its own that ``benchmarks/compared.py`` drives by lines of JSON.

``pydantic_ai.py`` and ``openai_agents.py`` run in environments of their own, so they import nothing of Nod.
"""
