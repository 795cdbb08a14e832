"""AgentDojo's four suites behind the gate: a model that does each task and then obeys each injection.

`tools.py` has AgentDojo's functions as tools of a team's own, and says which of them only read. `obeying.py`
plays one task with one injection, `figures.py` counts. `python -m tests.agentdojo` runs all of them; the
package `agentdojo` is in the extra `evaluation`.
"""
