"""Style sheets of web pages: their rules, and the declarations that hold for an element.

Only sheets that are in the page are read. A rule whose selector is not understood is counted, never guessed.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.tools.reading.markup import local_name

_SCREEN_PX = 1_280  # the width of the window that conditions are asked for
_MAX_RULES = 20_000
_MAX_NESTING = 20
_IGNORED_RULES = ("@font-face", "@keyframes", "@-webkit-keyframes", "@page", "@property", "@counter-style")
_CONDITION_RULES = ("@media", "@supports", "@layer", "@container", "@scope", "@document", "@starting-style")
_NOT_NOW = re.compile(
    r"""(?<!not\ )\b(?:print|speech|tty)\b | prefers-color-scheme\s*:\s*dark
    | prefers-reduced | orientation\s*:\s*portrait""",
    re.IGNORECASE | re.VERBOSE,
)
_WIDTH = re.compile(r"\b(min|max)-width\s*:\s*([\d.]+)(px|em|rem)", re.IGNORECASE)
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
_TOKEN = re.compile(
    r"""[^{};"'\\()]++ | \\. | "(?:[^"\\\n]|\\.)*+"? | '(?:[^'\\\n]|\\.)*+'? | [{};()\\]""",
    re.DOTALL | re.VERBOSE,
)
_PIECE = re.compile(
    r"""[^;,"'()\[\]\\]++ | "(?:[^"\\]|\\.)*+"? | '(?:[^'\\]|\\.)*+'? | \\. | .""", re.DOTALL | re.VERBOSE
)
_DECLARATION = re.compile(r"\s*(-{0,2}[A-Za-z][\w-]*|--[\w-]+)\s*:(.*)", re.DOTALL)
_IMPORTANT = re.compile(r"!\s*important\s*$", re.IGNORECASE)
_NAME = r"(?:[\w-]|[^\x00-\x7f]|\\[0-9a-fA-F]{1,6}\s?|\\[^0-9a-fA-F])++"
_SIMPLE = re.compile(
    rf"""
    (?P<tag>\*|{_NAME}) | \#(?P<id>{_NAME}) | \.(?P<class>{_NAME})
    | \[\s*(?P<attribute>{_NAME})\s*(?:(?P<operator>[~|^$*]?=)\s*
      (?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>{_NAME}))\s*(?P<flag>[iIsS])?\s*)?\]
    | ::?(?P<pseudo>[\w-]+)(?P<opens>\()?
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_COMBINATOR = re.compile(r"\s*([>+~])\s*|\s+")
_STATES = frozenset({  # what a page that no one has touched is not in
    "hover", "focus", "focus-within", "focus-visible", "active", "visited", "target",
    "target-within", "indeterminate", "fullscreen", "modal", "popover-open",
    "invalid", "user-invalid", "playing",
    "placeholder-shown", "autofill", "paused", "current", "past", "future",
})  # fmt: skip
_ALWAYS = frozenset({"valid", "defined", "read-only", "read-write", "optional", "scope"})
_PLACES = frozenset({
    "root", "first-child", "last-child", "only-child", "first-of-type", "last-of-type", "empty",
})  # fmt: skip
_BY_ATTRIBUTE = {
    "link": ("href",), "any-link": ("href",), "checked": ("checked", "selected"), "disabled": ("disabled",),
    "open": ("open",), "required": ("required",),
}  # fmt: skip
_LISTS = frozenset({"is", "where", "matches", "any", "-webkit-any", "-moz-any"})
_PSEUDO_ELEMENTS = frozenset({
    "before", "after", "first-line", "first-letter", "selection", "placeholder", "marker", "backdrop",
    "file-selector-button",
})  # fmt: skip
_NTH = re.compile(r"([+-]?\d*)n\s*(?:([+-])\s*(\d+))?|([+-]?\d+)")


class _UnknownSelectorError(Exception):
    """The selector has a part that is not understood."""


class _NeverError(Exception):
    """The selector is for a state or a part of an element that text is not in."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """One property's value; ``weight`` decides between several: importance, specificity and order."""

    name: str
    value: str
    weight: tuple[bool, bool, tuple[int, int, int], int]


@dataclass(frozen=True, slots=True)
class _Part:
    """One simple condition of a selector, such as a class; ``lists`` are those in ``:not()`` or ``:is()``."""

    kind: str
    name: str
    value: str = ""
    operator: str = ""
    lists: tuple["_Selector", ...] = ()


@dataclass(frozen=True, slots=True)
class _Selector:
    """Compounds from left to right, each with the combinator before it."""

    steps: tuple[tuple[str, tuple[_Part, ...]], ...]

    @property
    def specificity(self) -> tuple[int, int, int]:
        parts = [part for _, compound in self.steps for part in compound]
        inner = [max(each.specificity for each in part.lists) for part in parts if part.lists]
        own = (
            sum(part.kind == "id" for part in parts),
            sum(part.kind in ("class", "attribute", "pseudo") for part in parts),
            sum(part.kind == "tag" and part.name != "*" for part in parts),
        )
        a, b, c = (sum(each) for each in zip(own, *inner, strict=True))
        return a, b, c


@dataclass(slots=True)
class StyleSheets:
    """The rules of a page that speak of ``wanted`` properties, by what they ask of an element at least."""

    wanted: frozenset[str]
    unknown: int = 0
    """Rules with a wanted property whose selector is not understood."""
    imports: int = 0
    """Sheets at other addresses that are asked for."""
    _rules: dict[tuple[str, str], list[tuple[_Selector, list[Declaration]]]] = field(default_factory=dict)
    _count: int = 0

    def add(self, sheet: str) -> None:
        """Take the rules of one sheet, after those that were taken before."""
        _Reader(self, _COMMENT.sub(" ", sheet)).read("", 0)

    def find(self, element: Any) -> dict[str, str]:
        """Return the values that hold for an element, its ``style`` attribute included."""
        found = list(self._list_matching(element))
        inline = element.get("style")
        if inline:
            found += self._declare(_COMMENT.sub(" ", inline), (0, 0, 0), is_inline=True)
        found.sort(key=lambda each: each.weight)
        return {each.name: each.value for each in found}

    def take_rule(self, prelude: str, body: str) -> None:
        """Keep a rule where it has a wanted property."""
        if not any(self._declare(body, (0, 0, 0))):
            return
        self._count += 1
        if self._count > _MAX_RULES:
            self.unknown += 1
            return
        try:
            selectors = _parse_selectors(prelude)
        except _UnknownSelectorError:
            self.unknown += 1
            return
        for selector in selectors:
            declarations = list(self._declare(body, selector.specificity))
            self._rules.setdefault(_key_of(selector), []).append((selector, declarations))

    def _declare(
        self, body: str, specificity: tuple[int, int, int], *, is_inline: bool = False
    ) -> Iterator[Declaration]:
        for text in _split(body, ";"):
            found = _DECLARATION.match(text)
            if not found:
                continue
            name, value = found[1], found[2].strip()
            name = name if name.startswith("--") else name.lower()
            is_important = bool(_IMPORTANT.search(value))
            value = _IMPORTANT.sub("", value).strip()
            if name in self.wanted or name.startswith("--"):
                yield Declaration(name, value, (is_important, is_inline, specificity, self._count))

    def _list_matching(self, element: Any) -> Iterator[Declaration]:
        keys = [("tag", "*"), ("tag", local_name(element).lower())]
        keys += [("class", each) for each in element.get("class", "").split()]
        keys += [("id", element.get("id"))] if element.get("id") else []
        for key in keys:
            for selector, declarations in self._rules.get(key, ()):
                if _is_match(element, selector):
                    yield from declarations


@dataclass(slots=True)
class _Reader:
    """Reads a sheet's rules, those inside others too."""

    sheets: StyleSheets
    text: str
    place: int = 0

    def read(self, around: str, depth: int) -> None:
        """Take the rules up to the end of this block, which is in a rule with the selector ``around``."""
        said: list[str] = []
        declared: list[str] = []
        while found := _TOKEN.match(self.text, self.place):
            self.place = found.end()
            piece = found[0]
            if piece == "{":
                self._open("".join(said).strip(), around, depth)
                said = []
            elif piece == ";":
                self._end_statement("".join(said).strip(), declared)
                said = []
            elif piece == "}":
                break
            else:
                said.append(piece)
        declared.append("".join(said))
        if around:
            self.sheets.take_rule(around, ";".join(declared))

    def _end_statement(self, statement: str, declared: list[str]) -> None:
        if statement.lower().startswith("@import"):
            self.sheets.imports += 1
        elif not statement.startswith("@"):
            declared.append(statement)

    def _open(self, prelude: str, around: str, depth: int) -> None:
        name = prelude.lower()
        if depth > _MAX_NESTING or name.startswith(_IGNORED_RULES):
            self._skip()
        elif name.startswith(_CONDITION_RULES):
            if _is_met(prelude):
                self.read(around, depth + 1)
            else:
                self._skip()
        elif name.startswith("@"):
            self._skip()
        else:
            self.read(_nest(prelude, around), depth + 1)

    def _skip(self) -> None:
        depth = 1
        while depth and (found := _TOKEN.match(self.text, self.place)):
            self.place = found.end()
            depth += {"{": 1, "}": -1}.get(found[0], 0)


def _nest(prelude: str, around: str) -> str:
    """Return the selector of a rule inside another, written out."""
    if not around:
        return prelude
    outer = f":is({around})" if "," in around else around
    inner = [
        each.replace("&", outer) if "&" in each else f"{outer} {each.strip()}"
        for each in _split(prelude, ",")
    ]
    return ",".join(inner)


def _is_met(condition: str) -> bool:
    """Tell whether a condition holds in a wide window; one that is not known does."""
    if not condition.lower().startswith("@media"):
        return not condition.lower().startswith("@starting-style")
    return any(_is_query_met(query) for query in condition[len("@media") :].split(","))


def _is_query_met(query: str) -> bool:
    if _NOT_NOW.search(query):
        return False
    for bound, number, unit in _WIDTH.findall(query):
        width = float(number) * (1 if unit.lower() == "px" else 16)
        if (bound.lower() == "min" and width > _SCREEN_PX) or (bound.lower() == "max" and width < _SCREEN_PX):
            return False
    return True


def _split(text: str, at: str) -> Iterator[str]:
    """The parts of a text between marks that are in no quotes or brackets."""
    part: list[str] = []
    depth = 0
    for found in _PIECE.finditer(text):
        piece = found[0]
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(piece, 0)
        if piece == at and depth <= 0:
            yield "".join(part)
            part = []
        else:
            part.append(piece)
    yield "".join(part)


def _parse_selectors(text: str) -> list[_Selector]:
    """The selectors of a list; those that can match no text are left away."""
    found = []
    for each in _split(text, ","):
        try:
            found.append(_parse_selector(each.strip()))
        except _NeverError:
            continue
    return found


def _parse_selector(text: str) -> _Selector:
    steps: list[tuple[str, tuple[_Part, ...]]] = []
    place, combinator, compound = 0, "", list[_Part]()
    while place < len(text):
        between = _COMBINATOR.match(text, place)
        if between:
            if compound or between[1] is None or steps:
                steps.append((combinator, tuple(compound)))
            combinator, compound, place = between[1] or " ", [], between.end()
            continue
        part, place = _parse_part(text, place)
        compound.append(part)
    if not compound:
        raise _UnknownSelectorError
    return _Selector((*steps, (combinator, tuple(compound))))


def _parse_part(text: str, place: int) -> tuple[_Part, int]:
    found = _SIMPLE.match(text, place)
    if not found:
        raise _UnknownSelectorError
    if found["pseudo"]:
        return _parse_pseudo(text, found)
    kind = next(each for each in ("tag", "id", "class", "attribute") if found[each])
    name = _unescape(found[kind])
    value = next((found[each] for each in ("double", "single", "bare") if found[each] is not None), "")
    return _Part(
        kind, name if kind in ("id", "class") else name.lower(), value, found["operator"] or ""
    ), found.end()


def _parse_pseudo(text: str, found: re.Match[str]) -> tuple[_Part, int]:
    name, place, inside = found["pseudo"].lower(), found.end(), ""
    if found["opens"]:
        depth, begin = 1, place
        while depth and place < len(text):
            depth += {"(": 1, ")": -1}.get(text[place], 0)
            place += 1
        inside = text[begin : place - 1]
    if name in _STATES or name in _PSEUDO_ELEMENTS or name.startswith(("-webkit-", "-moz-", "-ms-")):
        raise _NeverError
    if name == "not" or name in _LISTS:
        lists = tuple(_parse_selectors(inside))
        if not lists and name != "not":
            raise _NeverError
        return _Part("not" if name == "not" else "is", name, lists=lists), place
    if name in ("nth-child", "nth-last-child", "nth-of-type") and " of " not in inside:
        return _Part("pseudo", name, inside.strip().lower()), place
    if name in _ALWAYS | _PLACES | _BY_ATTRIBUTE.keys():
        return _Part("pseudo", name), place
    raise _UnknownSelectorError


def _unescape(name: str) -> str:
    def write(found: re.Match[str]) -> str:
        if not found[1]:
            return found[2]
        number = int(found[1], 16)
        if 0 < number <= sys.maxunicode:
            return chr(number)
        return "\ufffd"

    return _ESCAPE.sub(write, name)


def _key_of(selector: _Selector) -> tuple[str, str]:
    """What an element has at least where the selector matches: an ID, a class or a tag."""
    compound = selector.steps[-1][1]
    for kind in ("id", "class", "tag"):
        for part in compound:
            if part.kind == kind:
                return kind, part.name
    return "tag", "*"


def _is_match(element: Any, selector: _Selector, last: int = -1) -> bool:
    at = last if last >= 0 else len(selector.steps) - 1
    combinator, compound = selector.steps[at]
    if not all(_has_part(element, part) for part in compound):
        return False
    if at == 0:
        return True
    return any(_is_match(each, selector, at - 1) for each in _list_related(element, combinator))


def _list_related(element: Any, combinator: str) -> Iterator[Any]:
    if combinator == " ":
        yield from element.iterancestors()
    elif combinator == ">":
        parent = element.getparent()
        if parent is not None:
            yield parent
    elif combinator == "+":
        before = element.getprevious()
        if before is not None:
            yield before
    else:
        yield from element.itersiblings(preceding=True)


def _has_part(element: Any, part: _Part) -> bool:
    if part.kind == "tag":
        return part.name in ("*", local_name(element).lower())
    if part.kind == "id":
        return bool(element.get("id") == part.name)
    if part.kind == "class":
        return part.name in element.get("class", "").split()
    if part.kind == "attribute":
        return _has_attribute(element, part)
    if part.kind in ("is", "not"):
        return any(_is_match(element, each) for each in part.lists) == (part.kind == "is")
    return _has_place(element, part)


def _has_attribute(element: Any, part: _Part) -> bool:
    value, wanted = element.get(part.name), part.value
    if value is None:
        return False
    tests: Mapping[str, bool] = {
        "": True,
        "=": value.lower() == wanted.lower(),
        "~=": wanted in value.split(),
        "|=": value == wanted or value.startswith(f"{wanted}-"),
        "^=": bool(wanted) and value.startswith(wanted),
        "$=": bool(wanted) and value.endswith(wanted),
        "*=": bool(wanted) and wanted in value,
    }
    return tests[part.operator]


def _has_place(element: Any, part: _Part) -> bool:
    name, tag = part.name, element.tag
    if name in _ALWAYS:
        return True
    if name in _BY_ATTRIBUTE:
        return any(element.get(each) is not None for each in _BY_ATTRIBUTE[name])
    if name == "root":
        return element.getparent() is None
    if name == "empty":
        return len(element) == 0 and not element.text
    if name in ("first-child", "last-child", "only-child"):
        is_first, is_last = element.getprevious() is None, element.getnext() is None
        return {"first-child": is_first, "last-child": is_last, "only-child": is_first and is_last}[name]
    if name in ("first-of-type", "last-of-type"):
        return next(element.itersiblings(tag, preceding=name == "first-of-type"), None) is None
    kind = tag if name == "nth-of-type" else None
    number = 1 + sum(1 for _ in element.itersiblings(kind, preceding=name != "nth-last-child"))
    return _is_nth(number, part.value)


def _is_nth(number: int, formula: str) -> bool:
    found = _NTH.fullmatch({"odd": "2n+1", "even": "2n"}.get(formula, formula))
    if not found:
        return False
    if found[4]:
        return number == int(found[4])
    step = int(found[1] + "1" if found[1] in ("", "+", "-") else found[1])
    first = int(f"{found[2]}{found[3]}") if found[2] else 0
    if step == 0:
        return number == first
    return (number - first) % step == 0 and (number - first) // step >= 0
