"""What the state machines have in common: the database that was asked for, and how they are run."""

import pytest
from hypothesis import HealthCheck
from hypothesis.stateful import RuleBasedStateMachine

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much)
"""What no machine is held to."""


@pytest.fixture(autouse=True)
def _kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in vars(request.module).values():
        if isinstance(each, type) and issubclass(each, RuleBasedStateMachine) and hasattr(each, "kind"):
            monkeypatch.setattr(each, "kind", request.config.option.database)
