"""The contract of channels as a test suite, for channels of other distributions and for Nod's own.

`contract.py` has the suite; `rules_contract.py`, `plans_contract.py` and `places_contract.py` have parts of
it. It acts as people through a `Driver` (`driver.py`), which each channel implements, on a real Nod with a
scripted model (`world.py`). The suite needs pytest with pytest-asyncio; ``docs/plugins.md`` shows its use.
Nothing else in ``bot/`` imports this package.
"""
