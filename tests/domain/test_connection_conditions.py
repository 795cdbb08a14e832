"""Rules that name the account under which a call is made."""

import pytest

from bot.domain.conditions import Condition
from bot.domain.conditions.parser import ConditionError
from bot.domain.connections import Identity

SCHEMA = {"type": "object", "properties": {"amount": {"type": "number"}, "connection": {"type": "string"}}}


@pytest.mark.parametrize("identity", list(Identity))
@pytest.mark.parametrize("named", list(Identity))
def test_it_holds_for_that_account_alone(named, identity):
    condition = Condition.parse(f"connection is {named}")
    assert condition.holds({}, {}, identity=identity) is (named is identity)
    assert Condition.parse(f"not connection is {named}").holds({}, {}, identity=identity) is (
        named is not identity
    )


def test_it_goes_with_other_conditions_and_reads_back():
    condition = Condition.parse("Connection IS person and (amount > 100)")
    assert condition.holds({"amount": 200}, SCHEMA, identity=Identity.PERSON) is True
    assert condition.holds({"amount": 200}, SCHEMA, identity=Identity.NOD) is False
    assert condition.holds({"amount": 2}, SCHEMA, identity=Identity.PERSON) is False
    assert Condition.restore(condition.text).root == condition.root


def test_an_argument_of_that_name_is_still_an_argument():
    condition = Condition.parse("connection = fast")
    assert condition.holds({"connection": "fast"}, SCHEMA) is True
    assert condition.holds({"connection": "slow"}, SCHEMA, identity=Identity.PERSON) is False


@pytest.mark.parametrize("text", ["connection is", "connection is mine", 'connection is "a b"'])
def test_another_word_is_refused_with_those_that_there_are(text):
    with pytest.raises(ConditionError):
        Condition.parse(text)
