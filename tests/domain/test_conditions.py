"""Conditions on the arguments of a call: what they mean, what is wrong with them, what can't be told."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.conditions import Condition
from bot.domain.conditions.parser import MAX_CONDITION_CHARS, ConditionError

TRANSFER = {
    "properties": {
        "amount": {"type": "number"},
        "currency": {"enum": ["EUR", "USD"], "type": "string"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "none"},
        "to": {"$ref": "#/$defs/Account"},
        "argv": {"type": "array", "items": {"type": "string"}},
        "fast": {"type": "boolean"},
        "copies": {"type": "integer"},
        "anything": {},
    },
    "$defs": {"Account": {"type": "object", "properties": {"bank": {"type": "string"}}}},
}
CALL: dict[str, Any] = {
    "amount": 150,
    "currency": "EUR",
    "to": {"bank": "north"},
    "argv": ["git", "push"],
    "fast": False,
    "url": "https://Docs.Python.org:443/3/",
}


def holds(text: str, **changes: Any) -> bool | None:
    return Condition.parse(text).holds(CALL | changes, {})


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("amount > 100", True),
        ("amount > 150", False),
        ("amount >= 150 and amount <= 150.0", True),
        ("amount < -1", False),
        ("currency in (EUR, USD)", True),
        ("currency not in (EUR, USD)", False),
        ("currency = EUR", True),
        ("currency == 'EUR'", True),
        ("currency != EUR", False),
        ("to.bank = north", True),
        ("argv.0 = git and argv.1 = push", True),
        ("fast = false", True),
        ("fast = true or amount > 100", True),
        ("not (fast = true or amount > 100)", False),
        ("NOT currency = USD AND amount > 1", True),
        ("currency = USD or currency = EUR and amount > 1000", False),
        ("host(url) in (docs.python.org)", True),
        ("host(url) in (DOCS.python.org)", True),
        ("host(url) matches \u201c*.python.org\u201d", True),
        ("to.bank matches n?rth", True),
    ],
)
def test_a_condition_answers_for_a_call(text: str, answer: bool) -> None:
    assert holds(text) is answer


@pytest.mark.parametrize(
    "text",
    [
        "missing > 1",
        "not (missing > 1)",
        "currency > 1",
        "amount = low",
        "amount matches 1*",
        "to = north",
        "to.missing = north",
        "argv.7 = git",
        "fast = 0",
        "missing > 1 and amount > 100",
        "host(currency.x) = a.example",
        "host(amount) = a.example",
    ],
)
def test_what_is_missing_or_of_another_kind_can_not_be_told(text: str) -> None:
    assert holds(text) is None


def test_a_part_that_settles_it_is_enough() -> None:
    assert holds("missing > 1 or amount > 100") is True
    assert holds("missing > 1 and amount > 1000") is False


@pytest.mark.parametrize(
    ("url", "answer"),
    [
        ("https://docs.python.org/", True),
        ("https://docs.python.org./", True),
        ("https://docs.python.org@evil.example/", False),
        ("https://evil.example/docs.python.org", False),
        ("https://evil.example\\@docs.python.org/", None),
        ("https://docs.python.org\n.evil.example/", None),
        ("https://[docs.python.org/", None),
        ("", None),
        (None, None),
    ],
)
def test_a_host_is_that_of_the_server_or_can_not_be_told(url: str | None, answer: bool | None) -> None:
    assert holds("host(url) in (docs.python.org)", url=url) is answer


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("infra/main.tf", True),
        ("./infra//a/./b.tf", True),
        ("infra", None),
        ("docs/infra/x", False),
        ("docs/../infra/x", None),
        ("/infra/x", None),
    ],
)
def test_a_path_is_compared_without_what_changes_nothing_in_it(path: str, answer: bool | None) -> None:
    declared = {"properties": {"path": {"type": "string", "x-names": "path"}}}
    assert Condition.parse('path matches "infra/**"').holds({"path": path}, declared) is answer


def test_where_a_tool_does_not_declare_a_path_another_spelling_of_it_can_not_be_told() -> None:
    assert holds('path matches "infra/**"', path="./infra/main.tf") is None
    assert holds('path matches "infra/**"', path="infra/main.tf") is True


def test_an_item_of_a_list_of_paths_is_found_under_the_name_of_another_tool() -> None:
    rule = Condition.parse('paths.0 matches "infra/**"')
    other = {"properties": {"path": {"type": "string"}}}
    assert rule.holds({"path": "infra/main.tf"}, other, of_several=True) is None
    assert rule.holds({"path": "docs/a.md"}, other, of_several=True) is False


def test_what_runs_by_default_counts_as_given() -> None:
    assert Condition.parse("note = none").holds({"amount": 1, "note": None}, TRANSFER) is True


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "too early"),
        ("amount", "too early"),
        ("amount >", "too early"),
        ("amount > lots", "`lots`"),
        ("amount 100", "`100`"),
        ("100 < amount", "`100`"),
        ('"amount" > 1', "Name a field"),
        ("amount > 1 for 2h", "`for`"),
        ("amount > 1 xor fast = true", "`xor`"),
        ("currency in EUR", "`EUR`"),
        ("currency in ()", "`)`"),
        ("currency in (EUR", "too early"),
        ("currency not = EUR", "`=`"),
        ("(amount > 1", "too early"),
        ('currency = "EUR', "can't be read"),
        ("currency matches", "too early"),
        ("host(url = x", "`=`"),
        ("not " * 9 + "fast = true", "too deeply"),
        ("(" * 9 + "fast = true" + ")" * 9, "too deeply"),
        (".".join("abcdefghi") + " = 1", "Name a field"),
        ("currency = " + "x" * MAX_CONDITION_CHARS, "at most 500"),
    ],
)
def test_what_does_not_parse_names_the_word_that_is_wrong(text: str, why: str) -> None:
    with pytest.raises(ConditionError) as raised:
        Condition.parse(text)
    assert why in str(raised.value)


@pytest.mark.parametrize("text", ["not " * 8 + "fast = true", "(" * 8 + "fast = true" + ")" * 8])
def test_as_many_brackets_and_nots_as_the_error_names_are_read(text: str) -> None:
    assert Condition.parse(text).text == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("amount > 1 and to.bank = north and note = x and argv.0 = git and anything = 1", None),
        ("amonut > 1", "it has no amonut (did you mean amount?)"),
        ("to.bnak = x", "it has no to.bnak (did you mean bank?)"),
        ("amount = low", "amount is a number, not text"),
        ("currency > 1", "currency is text, not a number"),
        ("currency in (EUR, SEK)", "currency is never SEK. It is one of EUR, USD"),
        ("note > 1", "note is text, not a number"),
        ("fast = yes", "fast is yes or no, not text"),
        ("host(amount) = a.example", "amount is a number, not text"),
        ("argv = git", "argv is a list, not text. Write argv.0 for its first item"),
        ("argv.first = git", "argv is a list. Write argv.0 for its first item"),
        ("amount.net > 5", "amount is a number and has no net. Write amount alone"),
        ("to.bank.name = north", "to.bank is text and has no name. Write to.bank alone"),
        ("currency.code = EUR", "currency is text and has no code. Write currency alone"),
        ("copies = 1.5", "copies is a whole number, never 1.5"),
        ("copies in (1, 2.5)", "copies is a whole number, never 2.5"),
        ("copies = 2.0", None),
        ("copies > 1.5", None),
        ("amount = 1.5", None),
    ],
)
def test_a_condition_is_checked_against_the_tool(text: str, why: str | None) -> None:
    condition = Condition.parse(text)
    assert condition.find_misfit(TRANSFER) == why
    if why:
        assert condition.holds(CALL, TRANSFER) is None


@pytest.mark.parametrize(
    "alternatives",
    [
        {"anyOf": [{"required": ["path"]}, {"required": ["url"]}]},
        {"oneOf": [{"properties": {"mode": {"const": "fast"}}}, {"properties": {"mode": {"const": "slow"}}}]},
        {"anyOf": [{"type": "object"}, {"type": "null"}]},
        {"$ref": "#/$defs/More"},
    ],
)
def test_the_alternatives_of_a_schema_have_what_the_schema_itself_says(alternatives: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "properties": {"path": {"x-names": "path"}, "count": {"type": "integer"}},
        "$defs": {"More": {"properties": {"mode": {"type": "string"}}}},
        **alternatives,
    }
    known, unknown = Condition.parse("count > 3"), Condition.parse("cuont > 3")
    assert known.find_misfit(schema) is None
    assert known.holds({"count": 4}, schema, of_several=True) is True
    assert unknown.find_misfit(schema) == "it has no cuont (did you mean count?)"
    assert unknown.holds({"count": 4}, schema, of_several=True) is False
    assert Condition.parse("path = a").holds({"path": "./a"}, schema) is True  # as the tool declares a path


@pytest.mark.parametrize(
    "more",
    [{"allOf": [{"properties": {"count": {"type": "integer"}}}]}, {"patternProperties": {"^c": {}}}],
)
def test_a_field_that_another_part_of_the_schema_may_have_is_not_lacking(more: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"path": {}}, **more}
    assert Condition.parse("count > 3").find_misfit(schema) is None
    assert Condition.parse("count > 3").holds({"count": 4}, schema, of_several=True) is True


@pytest.mark.parametrize(
    "condition",
    [
        "due before 2026-12-01",
        "due < 2026-12-01",
        'due >= "2026-12-01T10:00"',
        "due between 2026-12-01 and 2026-12-31",
        "due since 2026-12",
    ],
)
def test_a_date_has_no_order_and_the_refusal_says_what_to_write(condition: str) -> None:
    with pytest.raises(ConditionError, match="have no order here") as refused:
        Condition.parse(condition)
    assert 'Write `due matches "2026-12-*"`.' in str(refused.value)
    written = Condition.parse('due matches "2026-12-*"')
    assert [written.holds({"due": due}, {}) for due in ("2026-12-07", "2026-11-30")] == [True, False]


def test_what_another_release_wrote_can_not_be_told_of_any_call() -> None:
    kept = Condition.restore("amount between 1 and 2")
    assert kept.holds(CALL, TRANSFER) is None
    assert kept.find_misfit(TRANSFER) == "this release can't read it"


_WORDS = """amount currency to.bank 100 EUR and or not in ( ) , < = matches host "x" true " ' argv.0 ! é"""
words = st.sampled_from(_WORDS.split())


@given(st.lists(words, max_size=30).map(" ".join) | st.text(max_size=60))
def test_anything_at_all_is_read_or_refused_in_words(text: str) -> None:
    try:
        condition = Condition.parse(text)
    except ConditionError:
        return
    assert Condition.parse(condition.text) == condition
    assert condition.holds(CALL, TRANSFER) in (True, False, None)
    assert condition.holds({}, {}) is None
