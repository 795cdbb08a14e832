"""Conditions that look at how risky a call is, and at none of its arguments."""

import pytest

from bot.domain.conditions import Condition
from bot.domain.conditions.parser import ConditionError
from bot.domain.risks import Level

SCHEMA = {"type": "object", "properties": {"amount": {"type": "number"}, "risk": {"type": "string"}}}


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("named", list(Level))
def test_it_holds_for_calls_of_that_level(level: Level, named: Level) -> None:
    condition = Condition.parse(f"risk is {named}")
    assert condition.holds({}, {}, level=level) is (level is named)
    assert Condition.parse(f"not risk is {named}").holds({}, {}, level=level) is (level is not named)
    assert condition.holds({}, {}) is None  # no one knows


def test_it_goes_with_arguments_and_an_argument_of_that_name_is_one_still() -> None:
    both = Condition.parse("risk is destructive and amount > 100")
    assert both.holds({"amount": 101}, SCHEMA, level=Level.DESTRUCTIVE) is True
    assert both.holds({"amount": 101}, SCHEMA, level=Level.WRITE) is False
    assert (both.looks_at_risk, Condition.parse("risk = high").looks_at_risk) == (True, False)
    assert Condition.parse("risk = high").holds({"risk": "high"}, SCHEMA) is True


@pytest.mark.parametrize("text", ["risk is", "risk is high", 'risk is "a b"'])
def test_another_word_is_refused_with_those_there_are(text: str) -> None:
    told = r"After `risk is` comes read, write, destructive|stops too early"
    with pytest.raises(ConditionError, match=told):
        Condition.parse(text)
