"""Selectors of CSS: parsed from their text, and matched with elements.

The terms are those of CSS: a selector is a chain of compounds with a combinator before each but the first:
``div.a > p`` has the compounds ``div.a`` and ``p``. A compound is a list of conditions that an element must
meet (``div``, ``.a``, ``:first-child``). `parse_selectors` raises `UnknownSelectorError` for a selector with
a part that is not understood.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bot.tools.reading.markup import local_name

_PIECE = re.compile(
    r"""[^;,"'()\[\]\\]++ | "(?:[^"\\]|\\.)*+"? | '(?:[^'\\]|\\.)*+'? | \\. | .""", re.DOTALL | re.VERBOSE
)
"""One piece of a text for `split_unquoted`: plain text, a quoted text, an escape, or a single mark."""
_NAME = r"(?:[\w-]|[^\x00-\x7f]|\\[0-9a-fA-F]{1,6}\s?|\\[^0-9a-fA-F])++"
# one condition of a selector: "p", "#id", ".class", "[href^='x' i]", ":not(" or "::before"
_CONDITION = re.compile(
    rf"""
    (?P<tag>\*|{_NAME}) | \#(?P<id>{_NAME}) | \.(?P<class>{_NAME})
    | \[\s*(?P<attribute>{_NAME})\s*(?:(?P<operator>[~|^$*]?=)\s*
      (?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>{_NAME}))\s*(?P<flag>[iIsS])?\s*)?\]
    | ::?(?P<pseudo>[\w-]+)(?P<opens>\()?
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)  # "\31 " (a character's number), "\:"
_COMBINATOR = re.compile(r"\s*([>+~])\s*|\s+")  # blanks alone stand for "any ancestor"
_STATES = frozenset({  # states that no element has before someone touches the page
    "hover", "focus", "focus-within", "focus-visible", "active", "visited", "target",
    "target-within", "indeterminate", "fullscreen", "modal", "popover-open",
    "invalid", "user-invalid", "playing",
    "placeholder-shown", "autofill", "paused", "current", "past", "future",
})  # fmt: skip
_TRUE_CLASSES = frozenset({  # pseudo-classes that are taken as true
    "valid", "defined", "read-only", "read-write", "optional", "scope",
})  # fmt: skip
_POSITION_CLASSES = frozenset({  # pseudo-classes for an element's place among others
    "root", "first-child", "last-child", "only-child", "first-of-type", "last-of-type", "empty",
})  # fmt: skip
_BY_ATTRIBUTE = {  # the attributes of which an element must have one, by pseudo-class
    "link": ("href",), "any-link": ("href",), "checked": ("checked", "selected"), "disabled": ("disabled",),
    "open": ("open",), "required": ("required",),
}  # fmt: skip
_ANY_OF_CLASSES = frozenset({"is", "where", "matches", "any", "-webkit-any", "-moz-any"})
"""Pseudo-classes that hold if one of the selectors in their brackets matches."""
_PSEUDO_ELEMENTS = frozenset({
    "before", "after", "first-line", "first-letter", "selection", "placeholder", "marker", "backdrop",
    "file-selector-button",
})  # fmt: skip
_NTH = re.compile(r"([+-]?\d*)n\s*(?:([+-])\s*(\d+))?|([+-]?\d+)")  # "2n+1", or a number alone

Specificity = tuple[int, int, int]
"""The weight of a selector: the numbers of its ids, of its classes and attributes, and of its tags."""
NO_SPECIFICITY: Specificity = (0, 0, 0)


class UnknownSelectorError(Exception):
    """A selector has a part that is not understood."""


class _MatchesNothingError(Exception):
    """A selector can match no text: it is for a state (``:hover``) or a pseudo-element (``::before``)."""


@dataclass(frozen=True, slots=True)
class _Condition:
    """One condition on an element, such as a class."""

    kind: str  # tag, id, class, attribute, is, not or pseudo
    name: str
    value: str = ""
    operator: str = ""
    selectors: tuple["Selector", ...] = ()  # the selectors inside ``:not()`` or ``:is()``


@dataclass(frozen=True, slots=True)
class _Compound:
    """A compound of a selector, and the combinator before it."""

    combinator: str  # ">", "+", "~", " " for any ancestor; empty before the first compound
    conditions: tuple[_Condition, ...]


@dataclass(frozen=True, slots=True)
class Selector:
    """A selector: its compounds from left to right."""

    compounds: tuple[_Compound, ...]

    @property
    def specificity(self) -> Specificity:
        ids = classes = tags = 0
        for compound in self.compounds:
            for condition in compound.conditions:
                if condition.kind == "id":
                    ids += 1
                elif condition.kind in ("class", "attribute", "pseudo"):
                    classes += 1
                elif condition.kind == "tag" and condition.name != "*":
                    tags += 1
                if condition.selectors and condition.name != "where":  # `:where()` adds no weight
                    inner = max(selector.specificity for selector in condition.selectors)
                    inner_ids, inner_classes, inner_tags = inner
                    ids += inner_ids
                    classes += inner_classes
                    tags += inner_tags
        return ids, classes, tags


def find_key(selector: Selector) -> tuple[str, str]:
    """Return a pair of a kind and a name: the id, class or tag that an element must have to match."""
    conditions = selector.compounds[-1].conditions
    for kind in ("id", "class", "tag"):
        for condition in conditions:
            if condition.kind == kind:
                return kind, condition.name
    return "tag", "*"


def split_unquoted(text: str, separator: str) -> Iterator[str]:
    """Yield the parts of a text between separators; separators in quotes or brackets don't count."""
    part: list[str] = []
    depth = 0
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece in ("(", "["):
            depth += 1
        elif piece in (")", "]"):
            depth -= 1
        if piece == separator and depth <= 0:
            yield "".join(part)
            part = []
        else:
            part.append(piece)
    yield "".join(part)


def parse_selectors(text: str) -> list[Selector]:
    """Return the selectors of a list, except those that can match no text."""
    selectors = []
    for selector in split_unquoted(text, ","):
        try:
            selectors.append(_parse_selector(selector.strip()))
        except _MatchesNothingError:
            continue
    return selectors


def _parse_selector(text: str) -> Selector:
    compounds: list[_Compound] = []
    combinator = ""
    conditions: list[_Condition] = []
    position = 0
    while position < len(text):
        between = _COMBINATOR.match(text, position)
        if between is None:
            condition, position = _parse_condition(text, position)
            conditions.append(condition)
            continue
        is_leading_combinator = not conditions and not compounds and between[1] is not None  # as in "> p"
        if not is_leading_combinator:
            compounds.append(_Compound(combinator, tuple(conditions)))
        combinator = between[1] or " "
        conditions = []
        position = between.end()
    if not conditions:
        raise UnknownSelectorError
    return Selector((*compounds, _Compound(combinator, tuple(conditions))))


def _parse_condition(text: str, position: int) -> tuple[_Condition, int]:
    """Return the condition that begins at a position of a selector, and the position after it."""
    match = _CONDITION.match(text, position)
    if not match:
        raise UnknownSelectorError
    if match["pseudo"]:
        return _parse_pseudo(text, match)
    if match["id"]:
        return _Condition("id", _unescape(match["id"])), match.end()
    if match["class"]:
        return _Condition("class", _unescape(match["class"])), match.end()
    if match["tag"]:
        return _Condition("tag", _unescape(match["tag"]).lower()), match.end()
    value = match["double"] or match["single"] or match["bare"] or ""
    name = _unescape(match["attribute"]).lower()
    return _Condition("attribute", name, value, match["operator"] or ""), match.end()


def _parse_pseudo(text: str, match: re.Match[str]) -> tuple[_Condition, int]:
    """Return the condition of a pseudo-class, such as ``:not(.a)``, and the position after it."""
    name = match["pseudo"].lower()
    end = match.end()
    argument = ""
    if match["opens"]:
        end = _find_closing(text, match.end())
        argument = text[match.end() : end - 1]
    if name in _STATES or name in _PSEUDO_ELEMENTS or name.startswith(("-webkit-", "-moz-", "-ms-")):
        raise _MatchesNothingError
    if name == "not":
        return _Condition("not", name, selectors=tuple(parse_selectors(argument))), end
    if name in _ANY_OF_CLASSES:
        selectors = tuple(parse_selectors(argument))
        if not selectors:
            raise _MatchesNothingError
        return _Condition("is", name, selectors=selectors), end
    if name in ("nth-child", "nth-last-child", "nth-of-type") and " of " not in argument:
        return _Condition("pseudo", name, argument.strip().lower()), end
    if name in _TRUE_CLASSES | _POSITION_CLASSES | _BY_ATTRIBUTE.keys():
        return _Condition("pseudo", name), end
    raise UnknownSelectorError


def _find_closing(text: str, position: int) -> int:
    """Return the position after the bracket that closes the one before ``position``; else the text's end."""
    depth = 1
    while depth and position < len(text):
        if text[position] == "(":
            depth += 1
        elif text[position] == ")":
            depth -= 1
        position += 1
    return position


def _unescape(name: str) -> str:
    r"""Return a name without its escapes: ``\31 a`` is ``1a``, ``\:`` is ``:``."""

    def replace_escape(match: re.Match[str]) -> str:
        if not match[1]:
            return match[2]
        number = int(match[1], 16)
        if 0 < number <= sys.maxunicode:
            return chr(number)
        return "\ufffd"

    return _ESCAPE.sub(replace_escape, name)


def matches(element: Any, selector: Selector) -> bool:
    return _matches_up_to(element, selector, len(selector.compounds) - 1)


def _matches_up_to(element: Any, selector: Selector, index: int) -> bool:
    """Tell if an element matches the compounds of a selector up to ``index``, from right to left.

    The element must meet the compound at ``index`` itself, and a related element those before.
    """
    compound = selector.compounds[index]
    if not all(_meets(element, condition) for condition in compound.conditions):
        return False
    if index == 0:
        return True
    related = _list_related(element, compound.combinator)
    return any(_matches_up_to(other, selector, index - 1) for other in related)


def _list_related(element: Any, combinator: str) -> Iterator[Any]:
    """Yield the elements that the compound before the combinator may match."""
    if combinator == " ":
        yield from element.iterancestors()
    elif combinator == ">":
        parent = element.getparent()
        if parent is not None:
            yield parent
    elif combinator == "+":
        previous = element.getprevious()
        if previous is not None:
            yield previous
    else:
        yield from element.itersiblings(preceding=True)


def _meets(element: Any, condition: _Condition) -> bool:
    match condition.kind:
        case "tag":
            return condition.name in ("*", local_name(element).lower())
        case "id":
            return bool(element.get("id") == condition.name)
        case "class":
            return condition.name in element.get("class", "").split()
        case "attribute":
            return _has_attribute(element, condition)
        case "is":
            return _matches_any(element, condition.selectors)
        case "not":
            return not _matches_any(element, condition.selectors)
    return _meets_pseudo(element, condition)


def _matches_any(element: Any, selectors: tuple[Selector, ...]) -> bool:
    return any(matches(element, selector) for selector in selectors)


def _has_attribute(element: Any, condition: _Condition) -> bool:
    value = element.get(condition.name)
    expected = condition.value
    if value is None:
        return False
    tests: Mapping[str, bool] = {
        "": True,
        "=": value.lower() == expected.lower(),
        "~=": expected in value.split(),
        "|=": value == expected or value.startswith(f"{expected}-"),
        "^=": bool(expected) and value.startswith(expected),
        "$=": bool(expected) and value.endswith(expected),
        "*=": bool(expected) and expected in value,
    }
    return tests[condition.operator]


def _meets_pseudo(element: Any, condition: _Condition) -> bool:
    """Tell if a pseudo-class holds for an element: by an attribute, or by its place among others."""
    name = condition.name
    tag = element.tag
    if name in _TRUE_CLASSES:
        return True
    if name in _BY_ATTRIBUTE:
        return any(element.get(attribute) is not None for attribute in _BY_ATTRIBUTE[name])
    if name == "root":
        return element.getparent() is None
    if name == "empty":
        return len(element) == 0 and not element.text
    if name in ("first-child", "last-child", "only-child"):
        is_first = element.getprevious() is None
        is_last = element.getnext() is None
        return {"first-child": is_first, "last-child": is_last, "only-child": is_first and is_last}[name]
    if name in ("first-of-type", "last-of-type"):
        siblings = element.itersiblings(tag, preceding=name == "first-of-type")
        return next(siblings, None) is None
    counted_tag = tag if name == "nth-of-type" else None  # None counts elements of any tag
    siblings = element.itersiblings(counted_tag, preceding=name != "nth-last-child")
    return _is_nth(1 + len(list(siblings)), condition.value)


def _is_nth(number: int, formula: str) -> bool:
    """Tell if a formula such as ``2n+1`` gives this number, from 1, for any n from 0."""
    formula = {"odd": "2n+1", "even": "2n"}.get(formula, formula)
    match = _NTH.fullmatch(formula)
    if not match:
        return False
    factor, sign, offset, single_number = match.groups()
    if single_number:
        return number == int(single_number)
    if factor in ("", "+", "-"):
        factor += "1"
    step = int(factor)
    first = int(f"{sign}{offset}") if sign else 0
    if step == 0:
        return number == first
    n, rest = divmod(number - first, step)
    return rest == 0 and n >= 0
