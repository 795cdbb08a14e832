"""Hints for conditions that don't parse: what to write for words such as "contains" or "over".

The parser adds them to its errors: for ``amount over 100`` the hint is "Write `amount > 10`".
"""

import re

_DATE = re.compile(r"[12][0-9]{3}-[0-9]{2}")  # as a date begins: its year and month
_SAME, _OTHER, _PART = "{0} = x", "{0} != x", '{0} matches "*x*"'
_BEGIN, _END, _ANY = '{0} matches "x*"', '{0} matches "*x"', "{0} in (x, y)"
_MORE, _LESS, _LEAST, _MOST = "{0} > 10", "{0} < 10", "{0} >= 10", "{0} <= 10"
OPERATORS = {
    **dict.fromkeys(("is", "equals", "equal", "eq", "===", "be", "are", "like", "ilike", "~", "~="), _SAME),
    **dict.fromkeys(("isnt", "isn't", "<>", "ne", "neq", "differs", "unlike", "!", "!=="), _OTHER),
    **dict.fromkeys(
        ("contains", "contain", "has", "have", "includes", "include", "containing", "with"), _PART
    ),
    **dict.fromkeys(
        ("=~", "regex", "regexp", "rlike", "glob", "match", "matching", "similar", "search"), _PART
    ),
    **dict.fromkeys(
        ("starts", "startswith", "begins", "beginswith", "starting", "beginning", "prefix"), _BEGIN
    ),
    **dict.fromkeys(("under", "inside", "below_folder"), '{0} matches "x/**"'),
    **dict.fromkeys(("ends", "endswith", "ending", "suffix"), _END),
    **dict.fromkeys(("any", "one", "among", "of", "oneof", "either"), _ANY),
    **dict.fromkeys(("none", "nor", "outside", "except", "without"), "{0} not in (x, y)"),
    **dict.fromkeys(
        ("over", "above", "exceeds", "more", "greater", "gt", "larger", "bigger", "after"), _MORE
    ),
    **dict.fromkeys(("below", "less", "lower", "lt", "smaller", "fewer", "before"), _LESS),
    **dict.fromkeys(("at", "least", "gte", "ge", "min", "minimum", "from", "=>", "≥"), _LEAST),
    **dict.fromkeys(("most", "lte", "le", "max", "maximum", "upto", "up", "=<", "≤"), _MOST),
    **dict.fromkeys(("between", "within", "range", ".."), "{0} >= 10 and {0} <= 20"),
    **dict.fromkeys(("exists", "set", "given", "present", "empty", "null", "missing"), "{0} != x"),
}
"""An example of the comparison to write, by the word that people write in its place; ``{0}`` is the field."""


def hint_at_operator(word: str, field: str) -> str:
    """Say how to write the comparison that people mean by this word after a field."""
    meant = OPERATORS.get(word.lower().strip("."))
    if meant is None:
        return " After a field comes =, !=, <, <=, >, >=, in or matches."
    return f" Write `{meant.format(field)}`."


def hint_at_date(word: str, field: str) -> str:
    """Say how to write a condition on a date, which has no order here. Empty for another word."""
    date = _DATE.match(word)
    if not date:
        return ""
    return f' Dates are text and have no order here. Write `{field} matches "{date[0]}-*"`.'
